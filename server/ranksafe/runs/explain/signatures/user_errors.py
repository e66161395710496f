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
        "user-error",
        r"\AImportError: cannot import name '(?P<name>[^']+)' from partially initialized module '(?P<module>[^']+)'",
        en="{module} is imported while it is itself still being imported (a circular import), so {name} does not "
        "exist yet; "
        "or a file of yours has the name of an installed package." + _EN,
        zh="{module} 在自身尚未导入完成时又被导入（循环导入），因此 {name} 还不存在；或者你的某个文件与已安装的包同名。"
        + _ZH,
    ),
    signature(
        "missing-module",
        r"\AImportError: cannot import name '(?P<name>[^']+)'(?: from '(?P<module>[^']+)'(?: \((?P<path>[^)]+)\))?)?",
        en="There is no {name}[[ in {module}]][[ ({path})]]: another version of the package is installed than this "
        "code was "
        "written for, or the name is misspelt." + _EN,
        zh="[[{module}]][[（{path}）]]中没有 {name}：安装的包与代码所需的版本不同，或名称拼写有误。"
        + _ZH,
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
        en="A file or folder cannot be used ({message}); relative paths start at the working directory.",
        zh="无法使用文件或文件夹（{message}）；相对路径从工作目录算起。",
    ),
    signature(
        "user-error",
        r"\A(?P<type>ZeroDivisionError|RecursionError|NotImplementedError)\b"
        r"(?!.*(?:aten::|c10d|backend|CUDA|ProcessGroup|distributed))",
        en="{type} in the code itself." + _EN,
        zh="代码本身的 {type}。" + _ZH,
    ),
    signature(
        "user-error",
        r"\A(?P<type>AttributeError|ImportError): module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'",
        en="The installed {module} has no {name}: it is misspelt, or belongs to another version of the package."
        + _EN,
        zh="已安装的 {module} 没有 {name}：拼写有误，或属于该包的其他版本。" + _ZH,
    ),
    signature(
        "user-error",
        r"^\S*python[\d.]*: can't open file '(?P<name>[^']+)': \[Errno 2\]",
        en="Python does not find the script {name}; relative paths start at the working directory."
        + _EN,
        zh="Python 找不到脚本 {name}；相对路径从工作目录算起。" + _ZH,
    ),
    signature(
        "script-arguments",
        r"^\S+: error: (?:unrecognized arguments|the following arguments are required|argument )(?P<message>.*)",
        en="The script refuses its command-line arguments. Set the arguments of the run." + _EN,
        zh="脚本拒绝了命令行参数。请设置运行参数。" + _ZH,
    ),
)
