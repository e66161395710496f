"""What a file's text says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from ranksafe.source.text import stands_in_code, without_comment_lines

LINES = st.lists(st.sampled_from(["a", " ", "\t", "#", "ab", "\n", "\r", "aab", "\f", "'#a'"]))


@given(LINES.map("".join), st.sampled_from(["a", "ab", "aa", "b"]))
def test_a_word_stands_in_code_if_it_is_left_without_comment_lines(text: str, word: str) -> None:
    assert stands_in_code(text, word) == (word in without_comment_lines(text))
