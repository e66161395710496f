"""The words of argparse itself in the user's language: headings of `--help`, and what is wrong with an argument."""

from __future__ import annotations

import argparse
from typing import Final

from ranksafe.localization import Language, Translated

_CHINESE: Final = {
    "usage: ": "用法：",
    "positional arguments": "参数",
    "options": "选项",
    "show this help message and exit": "显示此帮助并退出",
    "show program's version number and exit": "显示版本号并退出",
    "%(heading)s:": "%(heading)s：",
    "argument %(argument_name)s: %(message)s": "参数 %(argument_name)s：%(message)s",
    "the following arguments are required: %s": "缺少参数：%s",
    "unrecognized arguments: %s": "无法识别的参数：%s",
    "unexpected option string: %s": "意外的选项：%s",
    "ignored explicit argument %r": "此选项不接受值：%r",
    "not allowed with argument %s": "不能与 %s 同时使用",
    "one of the arguments %s is required": "需要以下参数之一：%s",
    "expected one argument": "需要一个值",
    "expected at most one argument": "最多一个值",
    "expected at least one argument": "至少需要一个值",
    "expected %s argument": "需要 %s 个值",
    "expected %s arguments": "需要 %s 个值",
    "invalid %(type)s value: %(value)r": "%(value)r 不是有效的 %(type)s",
    "invalid choice: %(value)r (choose from %(choices)s)": "%(value)r 不在可选值中（%(choices)s）",
    "invalid choice: %(value)r, maybe you meant %(suggestion)r? (choose from %(choices)s)": (
        "%(value)r 不在可选值中，是否指 %(suggestion)r？（可选：%(choices)s）"
    ),
}
"""What argparse of CPython 3.10 to 3.14 looks up in gettext's catalogue and our parsers can print."""

_spoken: Language = "en"


def speak(language: Language) -> None:
    """Let argparse speak a language in this process.

    It finds its words by functions of gettext that it imports by name, for the language of the environment alone;
    ``--lang`` is to count as well.
    """
    global _spoken
    _spoken = language
    argparse._ = _said  # type: ignore[attr-defined]
    argparse.ngettext = _said_of_several  # type: ignore[attr-defined]
    argparse.ArgumentError.__str__ = _said_of_argument  # type: ignore[method-assign, assignment]


def wrong(message: Translated) -> argparse.ArgumentTypeError:
    """The error of an argument that cannot be used."""
    return argparse.ArgumentTypeError(message.in_language(_spoken))


def _said(words: str) -> str:
    return _CHINESE.get(words, words) if _spoken == "zh-cn" else words


def _said_of_argument(error: argparse.ArgumentError) -> str:
    """CPython 3.10 looks this sentence up nowhere."""
    if error.argument_name is None:
        return error.message
    words = _said("argument %(argument_name)s: %(message)s")
    return words % {"argument_name": error.argument_name, "message": error.message}


def _said_of_several(one: str, several: str, count: int) -> str:
    return _said(one if count == 1 else several)
