"""Batches that are padded to their longest row: as wide as the rank's own data makes them."""

from __future__ import annotations

import ast

from ranksafe.semantics.rank_flow.values import Known, Sameness, Unknown, Value, combined

_OF_TOKENS = frozenset({"input_ids", "attention_mask", "token_type_ids", "decoder_input_ids"})
"""What tokenizers pad (transformers 5.23.0, tokenization_utils_base.py)."""
_LONGEST = (True, "longest")


def padded_to_longest(node: ast.Call, arguments: list[Value]) -> Unknown | None:
    """``tokenizer(texts, padding=True)`` of texts that only this rank has; None for other calls."""
    if not any(
        item.arg == "padding"
        and isinstance(item.value, ast.Constant)
        and item.value.value in _LONGEST
        for item in node.keywords
    ):
        return None
    found = combined(*arguments)
    if found.sameness is not Sameness.DATA:
        return None
    return Unknown(Sameness.DATA, found.origin, shape=Sameness.DATA)


def padded_sequence(name: str, arguments: list[Value]) -> Unknown | None:
    """``pad_sequence(rows)`` of the rank's own rows; None for other calls."""
    if not name.endswith(".rnn.pad_sequence") or not arguments:
        return None
    found = combined(*arguments)
    if found.sameness is not Sameness.DATA:
        return None
    return Unknown(Sameness.DATA, found.origin, shape=Sameness.DATA)


def tokens_of(batch: Unknown, index: Value) -> Unknown | None:
    """``batch["input_ids"]`` of such a batch; None for other subscripts."""
    if batch.sameness is not Sameness.DATA or batch.shape is not Sameness.DATA:
        return None
    if not isinstance(index, Known) or index.constant not in _OF_TOKENS:
        return None
    return Unknown(Sameness.DATA, batch.origin, shape=Sameness.DATA)
