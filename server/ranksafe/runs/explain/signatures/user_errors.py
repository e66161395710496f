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
        # Without the package itself Python would name that (importlib/_bootstrap.py).
        r"\AModuleNotFoundError: No module named '(?P<package>\w+)\.(?P<rest>[\w.]+)'",
        en="The installed {package} has no module {package}.{rest}: it belongs to another version of the package, or a "
        "file or folder of yours is called {package}." + _EN,
        zh="已安装的 {package} 中没有模块 {package}.{rest}：它属于该包的其他版本，或你的某个文件或文件夹名为 "
        "{package}。" + _ZH,
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
        "wrong-package",
        # PyPI's "apex" is a toolkit for pyramid, a web framework.
        r"\A(?:ImportError|ModuleNotFoundError): [^\n]*'pyramid",
        frames=r"/apex/",
        en="The installed 'apex' is not NVIDIA's: it is another package of that name on PyPI, made for the web "
        "framework pyramid. Uninstall it, and build NVIDIA's apex from its repository or use torch's own (torch.amp, "
        "DistributedDataParallel)." + _EN,
        zh="所安装的 'apex' 不是 NVIDIA 的：它是 PyPI 上同名的另一个包，用于 Web 框架 pyramid。请卸载它，然后从 NVIDIA "
        "的仓库构建 apex，或使用 torch 自带的功能（torch.amp、DistributedDataParallel）。" + _ZH,
    ),
    signature(
        "user-error",
        r"\AImportError: attempted relative import (?:with no known parent package|beyond top-level package)",
        en="A file with relative imports (from . import …) is started as a script, or from outside of its package. "
        "Start it as a module from the folder above its package (torchrun -m package.module, accelerate launch -m "
        "package.module), or import absolutely." + _EN,
        zh="含相对导入（from . import …）的文件被作为脚本启动，或在其包之外启动。请在包的上级文件夹中以模块方式启动"
        "（torchrun -m package.module、accelerate launch -m package.module），或改用绝对导入。"
        + _ZH,
    ),
    signature(
        "missing-module",
        r"\AImportError: cannot import name '(?P<name>[^']+)'(?: from '(?P<module>[^']+)'(?: \((?P<path>[^)]+)\))?)?",
        en="There is no {name}[[ in {module}]][[ ({path})]]: another version of the package is installed than this "
        "code was "
        "written for, or, if the import is your own, the name may be misspelt." + _EN,
        zh="[[{module}]][[（{path}）]]中没有 {name}：安装的包与代码所需的版本不同；"
        "若该导入是你自己的代码，名称也可能拼写有误。" + _ZH,
    ),
    signature(
        "user-error",
        r"\A(?P<type>NameError|UnboundLocalError): (?P<message>.*)",
        plain=True,
        en="A name is used that was never set ({message}).",
        zh="使用了未定义的名称（{message}）。",
    ),
    signature(
        "user-error",
        r"\A(?:FileNotFoundError|NotADirectoryError|IsADirectoryError|PermissionError): (?P<message>.*)",
        plain=True,
        en="A file or folder cannot be used ({message}); relative paths start at the working directory.",
        zh="无法使用文件或文件夹（{message}）；相对路径从工作目录算起。",
    ),
    signature(
        "user-error",
        r"\AZeroDivisionError\b",
        plain=True,
        en="Something is divided by zero on this line: most often a count that is 0, of samples, batches or steps "
        "(less data than one batch, or a file that was not found).",
        zh="该行除以了零：通常是样本、批次或步数的计数为 0（数据不足一个批次，或没有找到文件）。",
    ),
    signature(
        "user-error",
        r"\ARecursionError\b",
        plain=True,
        en="Functions call each other without an end: see which frames repeat (a property or __getattr__ that asks for "
        "itself, a module that contains itself).",
        zh="函数无休止地互相调用：请查看重复出现的帧（访问自身的 property 或 __getattr__、包含自身的模块）。",
    ),
    signature(
        "user-error",
        r"\ANotImplementedError\b(?!.*(?:aten::|c10d|backend|CUDA|ProcessGroup|distributed))",
        plain=True,
        en="What is called is not implemented: a method that the class has to define itself (its name misspelt, or "
        "indented out of the class), or a case that the code does not handle.",
        zh="所调用的内容没有实现：类需要自己定义的方法（名称拼写有误，或缩进到了类之外），或代码没有处理的情况。",
    ),
    signature(
        "user-error",
        r"\A(?:AttributeError|ImportError): module '(?P<module>[\w.]+)' has no attribute '(?P<name>_\w+)'",
        en="The installed {module} has no {name}. The name is internal to a package, so two packages do not fit "
        "together, or one is installed only in part: install versions that were released for each other."
        + _EN,
        zh="已安装的 {module} 没有 {name}。这是包的内部名称，因此是两个包的版本不匹配，或其中一个安装不完整："
        "请安装相互配套的版本。" + _ZH,
    ),
    signature(
        "user-error",
        r"\A(?P<type>AttributeError|ImportError): module '(?P<module>[\w.]+)' has no attribute '(?P<name>\w+)'",
        en="The installed {module} has no {name}: it belongs to another version of the package, or, if the line is "
        "your own, it may be misspelt." + _EN,
        zh="已安装的 {module} 没有 {name}：它属于该包的其他版本；若该行是你自己的代码，也可能拼写有误。"
        + _ZH,
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
