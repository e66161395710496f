"""Ordinary mistakes, the same on one GPU: they must not be dressed up as a multi-GPU problem."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_EN = " This has nothing to do with several GPUs."
_ZH = "这与多 GPU 无关。"

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "user-error",
        r"\A(?:Syntax|Indentation|Tab)Error: ",
        en="Python cannot read this file." + _EN,
        zh="Python 无法解析此文件。" + _ZH,
    ),
    signature(
        "missing-module",
        r"\AModuleNotFoundError: No module named '(?P<name>[^']+)'",
        en="{name} is not installed in the interpreter that ran this, or the working directory is another one."
        + _EN,
        zh="运行所用的解释器中没有安装 {name}，或工作目录不对。" + _ZH,
    ),
    signature(
        "missing-module",
        r"\AImportError: cannot import name '(?P<name>[^']+)'",
        en="The installed version has no {name}." + _EN,
        zh="已安装的版本中没有 {name}。" + _ZH,
    ),
    signature(
        "user-error",
        r"\A(?P<type>NameError|UnboundLocalError): (?P<message>.*)",
        en="A name is used that was never set ({message})." + _EN,
        zh="使用了未定义的名称（{message}）。" + _ZH,
    ),
    signature(
        "user-error",
        r"\A(?:FileNotFoundError|NotADirectoryError|IsADirectoryError|PermissionError): (?P<message>.*)",
        en="A file or folder cannot be used ({message}); relative paths start at the working directory."
        + _EN,
        zh="无法使用文件或文件夹（{message}）；相对路径从工作目录算起。" + _ZH,
    ),
    signature(
        "user-error",
        r"\A(?P<type>ZeroDivisionError|RecursionError|NotImplementedError): ?(?P<message>.*)",
        en="{type} in the code itself." + _EN,
        zh="代码本身的 {type}。" + _ZH,
    ),
    signature(
        "script-arguments",
        r"error: (?:unrecognized arguments|the following arguments are required|argument )(?P<message>.*)",
        en="The script refuses its command-line arguments. Set the arguments of the run." + _EN,
        zh="脚本拒绝了命令行参数。请设置运行参数。" + _ZH,
    ),
)
