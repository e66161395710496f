"""What cannot be pickled on its way to another process or into a file.

The words are pickle's and differ between Python 3.8 and 3.14; the frames tell where the object was to go.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

_WORDS = (
    r"\A(?:AttributeError|TypeError|PicklingError|RuntimeError): [^\n]*?"
    r"[Cc]an(?:'t|not) (?:pickle(?: local object)?|get local object) (?P<what>[^\n:]{1,200})"
)
_NAMED_EN = (
    "Lambdas, functions inside of functions, open files and locks cannot be: use a function at a module's top level "
    "(functools.partial for its arguments), and open files in the worker."
)
_NAMED_ZH = (
    "lambda、函数内部定义的函数、打开的文件和锁都不能 pickle：请使用模块顶层的函数（参数用 functools.partial），"
    "并在 worker 中打开文件。"
)

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "cannot-pickle",
        _WORDS,
        frames=r"/torch/utils/data/dataloader\.py",
        plain=True,
        en="{what} cannot be pickled, and DataLoader workers started with spawn or forkserver get the data set, "
        "collate_fn and worker_init_fn that way. " + _NAMED_EN,
        zh="{what} 不能 pickle，而以 spawn 或 forkserver 启动的 DataLoader worker 正是通过 pickle 获得数据集、"
        "collate_fn 和 worker_init_fn。" + _NAMED_ZH,
    ),
    signature(
        "cannot-pickle",
        _WORDS,
        frames=r"/torch/serialization\.py|/safetensors/|/transformers/trainer\.py:_save",
        plain=True,
        en="{what} cannot be pickled into the file that is saved here. Save a state_dict and plain values instead of "
        "whole objects.",
        zh="{what} 不能 pickle 到此处保存的文件中。请保存 state_dict 和普通值，而不是整个对象。",
    ),
    signature(
        "cannot-pickle",
        _WORDS,
        frames=r"/torch/distributed/distributed_c10d\.py:_?\w*object",
        plain=True,
        en="{what} cannot be pickled, and collectives of objects send them that way. Send plain values or tensors.",
        zh="{what} 不能 pickle，而对象的集合通信正是通过 pickle 发送。请发送普通值或张量。",
    ),
    signature(
        "cannot-pickle",
        _WORDS,
        frames=r"/multiprocessing/|/multiprocess/|/concurrent/futures/",
        plain=True,
        en="{what} cannot be pickled, and another process was to get it that way. " + _NAMED_EN,
        zh="{what} 不能 pickle，而另一个进程要通过 pickle 获得它。" + _NAMED_ZH,
    ),
    signature(
        "cannot-unpickle",
        r"\AAttributeError: Can't get attribute '(?P<what>[^']+)' on <module '(?P<module>[^']+)'",
        plain=True,
        en="A process that was given a pickled object does not find {what} in the module {module}. Put {what} into a "
        "module of its own that every process can import, above any main guard.",
        zh="某个进程收到 pickle 对象后，在模块 {module} 中找不到 {what}。请把 {what} 放进每个进程都能导入的独立模块，"
        "并且不要放在 main 保护之内。",
    ),
    signature(
        "cannot-pickle",
        _WORDS,
        plain=True,
        en="{what} cannot be pickled. " + _NAMED_EN,
        zh="{what} 不能 pickle。" + _NAMED_ZH,
    ),
)
