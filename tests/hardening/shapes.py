"""Files that are large, deep or wide in one way each, by size: real code, repeated until something gives in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

HEAD: Final = "import os\nimport torch\nimport torch.distributed as dist\nfrom torch import nn\n"
FOUND: Final = """
def found():
    if dist.get_rank() == 0:
        dist.barrier()
"""
"""A true RS401."""


def _each(form: str) -> Callable[[int], str]:
    return lambda count: "".join(form.format(n=n, next=(n + 1) % count) for n in range(count))


def _in_function(form: str) -> Callable[[int], str]:
    return lambda count: (
        "def work(x, model, loader):\n"
        + "".join(
            f"    {line}\n"
            for n in range(count)
            for line in form.format(n=n, next=n + 1).split("\n")
        )
    )


def _nested(count: int) -> str:
    return (
        "".join(f"{'  ' * n}if os.path.exists('{n}'):\n" for n in range(count))
        + "  " * count
        + "pass\n"
    )


SHAPES: Final[dict[str, Callable[[int], str]]] = {
    "plain lines": _each("x{n} = {n}\n"),
    "one name": _each("x = x + {n}\n"),
    "calls": _each("print('{n}', torch.zeros({n}))\n"),
    "functions": _each("def f{n}(a, b):\n    return a.to('cuda') + b\n\n"),
    "functions that ask for the rank": _each(
        "def f{n}(a):\n    if dist.get_rank() == 0:\n        print(a)\n    dist.all_reduce(a)\n\n"
    ),
    "functions in a ring": _each(
        "def f{n}(a):\n    if dist.get_rank() == 0:\n        a = f{next}(a)\n    return dist.all_reduce(a)\n\n"
    ),
    "functions that call all": lambda count: (
        _each("def f{n}(a):\n    dist.all_reduce(a)\n\n")(count)
        + "def call_all(a):\n"
        + "".join(f"    f{n}(a)\n" for n in range(count))
    ),
    "classes": _each("class C{n}:\n    def __init__(self):\n        self.x = {n}\n\n"),
    "modules with layers": _each(
        "class M{n}(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.a = nn.Linear(2, 2)\n\n"
        "    def forward(self, x):\n        return self.a(x)\n\n"
    ),
    "classes that derive from each other": lambda count: (
        "class C0(nn.Module): pass\n"
        + "".join(
            f"class C{n}(C{n - 1}):\n    def f(self): return super().f()\n" for n in range(1, count)
        )
    ),
    "methods": lambda count: (
        "class C(nn.Module):\n"
        + "".join(
            f"    def f{n}(self, x):\n        return self.f{(n + 1) % count}(x)\n"
            for n in range(count)
        )
    ),
    "one function": _in_function("x{n} = model(x{n})"),
    "one function with collectives": _in_function("dist.all_reduce(x)"),
    "one function with branches": _in_function("if x:\n    x = model(x, {n})"),
    "one function with loops": _in_function("for batch in loader:\n    model(batch).backward()"),
    "one function with rank branches": _in_function("if dist.get_rank() == 0:\n    print({n})"),
    "imports": _each("import package{n}.module{n}\n"),
    "aliases": lambda count: (
        "x0 = dist\n"
        + "".join(f"x{n} = x{n - 1}\n" for n in range(1, count))
        + f"x{count - 1}.barrier()\n"
    ),
    "ignore comments": _each("x{n} = {n}  # ranksafe: ignore[RS401]\n"),
    "comments": _each("# a comment about torch.distributed and DataParallel {n}\n"),
    "strings": _each("'torch.distributed.all_reduce {n}'\n"),
    "one dictionary": lambda count: (
        "d = {" + ", ".join(f"'k{n}': {n}" for n in range(count)) + "}\n"
    ),
    "one list of calls": lambda count: "d = [" + ", ".join(f"f({n})" for n in range(count)) + "]\n",
    "one long line": lambda count: "x = 1" + " " * count + "\n",
    "one long text": lambda count: "x = '" + "a" * count + "'\n",
    "decorators": lambda count: "".join(f"@d{n}\n" for n in range(count)) + "def f(): pass\n",
    "arguments": lambda count: "def f(" + ", ".join(f"a{n}" for n in range(count)) + "): pass\n",
    "broken lines": _each("x{n} = (\n"),
    "half of them broken": _each("x{n} = {n}\nif x{n}\n"),
    "nested": lambda count: _nested(min(count, 90)),
    "sums": lambda count: "x = " + " + ".join(f"x{n}" for n in range(count)) + "\n",
    "chained calls": lambda count: "x = torch" + "".join(f".f{n}()" for n in range(count)) + "\n",
    "elif": lambda count: (
        "if x == 0: pass\n" + "".join(f"elif x == {n}: pass\n" for n in range(count))
    ),
    "try": _each("try:\n    f{n}()\nexcept ValueError:\n    pass\n"),
    "with": _each("with open('{n}') as f{n}:\n    f{n}.read()\n"),
    "save": _each("torch.save(model.state_dict(), 'm{n}.pt')\n"),
    "loaders": _each("l{n} = torch.utils.data.DataLoader(data{n}, batch_size={n})\n"),
    "wrapped models": _each("m{n} = nn.parallel.DistributedDataParallel(model{n})\n"),
}
"""By name: the text with so many repetitions."""


def text_of(shape: str, count: int) -> str:
    """A file of that shape, with a true finding at its end."""
    return HEAD + SHAPES[shape](count) + FOUND
