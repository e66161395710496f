"""The queries rules ask, on small programs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from ranksafe.semantics.guards import GuardKind
from ranksafe.semantics.module import Module
from ranksafe.semantics.project.index import ProjectIndex
from ranksafe.source.text import SourceText


def module_of(
    text: str, name: str = "train", project: ProjectIndex | None = None, path: str | None = None
) -> Module:
    source = SourceText(text)
    module = Module(source, name, path, project)
    tree = ast.parse(text)
    module.fill(tree)
    return module


def last_call(module: Module) -> ast.Call:
    *_, call = module.nodes(ast.Call)
    assert isinstance(call, ast.Call)
    return call


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\ntorch.nn.functional.relu(1)", "torch.nn.functional.relu"),
        ("import torch.nn.functional as F\nF.relu(1)", "torch.nn.functional.relu"),
        ("from transformers.trainer import Trainer\nTrainer()", "transformers.Trainer"),
        (
            "from torch.nn.parallel import DistributedDataParallel as DDP\nDDP(m)",
            "torch.nn.parallel.DistributedDataParallel",
        ),
        ("import torch\nDDP = torch.nn.DataParallel\nDDP(m)", "torch.nn.DataParallel"),
        ("t = 1\nimport torch\nt = torch\nt.abs(1)", "torch.abs"),
        ("from torch.nn import *\nDataParallel(m)", "torch.nn.DataParallel"),
        ("len(x)", "builtins.len"),
        ("def f(): pass\nf()", "train.f"),
        ("class A:\n    def m(self): pass\nA()", "train.A"),
        ("try:\n    from a import X\nexcept ImportError:\n    from b import X\nX()", "a.X"),
        ("def f(torch):\n    return torch.abs(1)", None),
        ("import torch as t\ndef f():\n    t = other()\n    return t.abs(1)", None),
    ],
)
def test_qualified_name_of_callee(text: str, expected: str | None) -> None:
    module = module_of(text)
    assert module.qualified_name(last_call(module).func) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from transformers import Trainer\nt = Trainer()\nuse(t)", "transformers.Trainer"),
        ("from transformers import AutoModelForCausalLM as A\nm = A.from_pretrained('x')\nuse(m)", "transformers.PreTrainedModel"),
        ("from transformers import AutoTokenizer\nm = AutoTokenizer.from_pretrained('x')\nuse(m)", "transformers.AutoTokenizer"),
        ("from torch import nn\nclass N(nn.Module): pass\nm = N().cuda()\nuse(m)", "train.N"),
        ("from torch import nn\ndef make():\n    return nn.Linear(1, 1)\nuse(make())", "torch.nn.Linear"),
        ("from accelerate import Accelerator\na = Accelerator()\nuse(a)", "accelerate.Accelerator"),
        ("import torch\ndef f(m: torch.nn.Module):\n    use(m)", "torch.nn.Module"),
        ("import torch\ndef f(m: 'torch.nn.Module'):\n    use(m)", "torch.nn.Module"),
        (
            "from accelerate import Accelerator\nfrom torch import nn\na = Accelerator()\nm = nn.Linear(1, 1)\n"
            "m, o = a.prepare(m, 1)\nuse(m)",
            "torch.nn.Linear",
        ),
        ("if c:\n    m = dict()\nelse:\n    m = other\nuse(m)", None),
    ],
)  # fmt: skip
def test_type_of_argument(text: str, expected: str | None) -> None:
    module = module_of(text)
    call = next(
        item
        for item in module.nodes(ast.Call)
        if getattr(item, "func", None) is not None and ast.unparse(item.func) == "use"
    )  # type: ignore[attr-defined]
    assert isinstance(call, ast.Call)
    assert module.type_of(call.args[0]) == expected


def test_type_of_self_attribute() -> None:
    module = module_of(
        "from torch import nn\nclass A:\n    def __init__(self):\n        self.net = nn.Linear(1, 1)\n"
        "    def run(self):\n        return self.net(1)\n"
    )
    assert module.type_of(last_call(module).func) == "torch.nn.Linear"


GUARDED = """\
import os
from transformers import AutoModel, Trainer
ddp = int(os.environ.get("WORLD_SIZE", 1)) != 1
device_map = "auto"
if ddp:
    device_map = {"": int(os.environ["LOCAL_RANK"])}
model = AutoModel.from_pretrained("x", device_map=device_map)
"""


def test_value_overridden_under_a_launch_guard_is_guarded() -> None:
    module = module_of(GUARDED)
    values = module.argument(last_call(module), "device_map")
    assert values is not None
    assert values.complete
    assert len(values.known) == 2
    assert all(value.is_guarded_by_launch for value in values.known)


@pytest.mark.parametrize(
    ("before", "argument", "expected"),
    [
        ('kw = dict(device_map="auto")', "**kw", ["auto"]),
        ('kw = {"device_map": "auto"}', "**kw", ["auto"]),
        ('kw = {}\nkw["device_map"] = "auto"', "**kw", ["auto"]),
        ('kw = dict(a=1)\nkw.update(device_map="auto")', "**kw", ["auto"]),
        ('kw = {**base, "device_map": "auto"}', "**kw", ["auto"]),
        ('kw = {"device_map": "auto"}\nkw.pop("device_map")', "**kw", []),
        ('kw = {"device_map": "auto"}\nkw["device_map"] = None', "**kw", [None]),
        ('d = "auto"', "device_map=d", ["auto"]),
        ('d = "auto"\nd = None', "device_map=d", [None]),
        ('d = "auto" if big else None', "device_map=d", ["auto", None]),
        ('D = "auto"\ndef pick():\n    return D', "device_map=pick()", ["auto"]),
        ("kw = {}", "**kw", None),
    ],
)
def test_keyword_through_dictionaries(
    before: str, argument: str, expected: list[object] | None
) -> None:
    module = module_of(f"{before}\nload('x', {argument})\n")
    call = next(item for item in module.calls_written("load"))
    values = module.argument(call, "device_map")
    assert (None if values is None else values.constants()) == expected


def test_default_of_a_parameter_is_known_but_not_complete() -> None:
    module = module_of('def load(device_map="auto"):\n    return get(device_map=device_map)\n')
    values = module.argument(last_call(module), "device_map")
    assert values is not None
    assert values.constants() == ["auto"]
    assert not values.complete


def test_default_of_a_command_line_option() -> None:
    module = module_of(
        'import argparse\np = argparse.ArgumentParser()\np.add_argument("--device-map", default="auto")\n'
        "args = p.parse_args()\nload(device_map=args.device_map)\n"
    )
    values = module.argument(last_call(module), "device_map")
    assert values is not None
    assert values.constants() == ["auto"]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("if rank == 0:\n    f()", [GuardKind.RANK]),
        ("if not dist.is_initialized():\n    f()", [GuardKind.LAUNCH]),
        ("if torch.cuda.device_count() > 1:\n    f()", [GuardKind.DEVICE_COUNT]),
        ("def g():\n    if world_size > 1:\n        return\n    f()", [GuardKind.LAUNCH]),
        ("main = r.get_rank() == 0\nif main:\n    f()", [GuardKind.RANK]),
        ("if x:\n    f()", [GuardKind.OTHER]),
        ("f()", []),
    ],
)
def test_guards(text: str, kinds: list[GuardKind]) -> None:
    module = module_of(text)
    call = module.calls_written("f")[0]
    assert [guard.kind for guard in module.guards(call)] == kinds


def test_methods_reached_from_forward_include_properties_and_helpers() -> None:
    module = module_of(
        "class N:\n    def forward(self, x):\n        return self.step(x)\n    def step(self, x):\n"
        "        return x.to(self.device)\n    @property\n    def device(self):\n        return 1\n    def idle(self):\n        pass\n"
    )
    cls = module.class_named("train.N")
    assert cls is not None
    assert [item.name for item in module.methods_reached_from(cls, "forward")] == [
        "forward",
        "step",
        "device",
    ]


def test_columns_are_characters() -> None:
    module = module_of('s = "🤗 你好"; f(s)\n')
    place = module.range_of(module.calls_written("f")[0])
    assert (place.start.column, place.end.column) == (12, 16)


def test_facts_of_an_entry_script() -> None:
    module = module_of(
        "from transformers import Trainer\nclass T(Trainer):\n    pass\ndef main():\n    T().train()\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    facts = module.facts
    assert facts.is_entry
    assert [name for name, _ in facts.trainers] == ["train.T"]
    assert facts.project_trains_with_trainer
    assert not facts.launcher_evidence


def test_setting_a_launcher_variable_is_no_evidence() -> None:
    module = module_of('import os\nos.environ["WORLD_SIZE"] = "1"\nrank = os.environ.get("RANK")\n')
    assert [item.what for item in module.facts.launcher_evidence] == ["RANK"]


def test_project_knows_whose_models_are_replicated(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "from torch import nn\nclass Part(nn.Module):\n    pass\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        self.part = Part()\nclass Idle(nn.Module):\n    pass\n"
    )
    (tmp_path / "other.py").write_text("from torch import nn\nclass Other(nn.Module):\n    pass\n")
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("from model import Net as Model\n")
    (tmp_path / "train.py").write_text(
        "from torch.nn import DataParallel\nfrom pkg import Model\nnet = DataParallel(Model())\n"
    )
    project = ProjectIndex(tmp_path)
    assert project.resolve("pkg.Model") == "model.Net"
    assert project.wraps_data_parallel("model")
    assert not project.wraps_data_parallel("other")
    assert not project.trains_with_trainer("model")
    assert project.bases("model.Net") == ["torch.nn.Module"]


def test_base_class_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text(
        "from transformers import Trainer\nclass Mine(Trainer):\n    pass\n"
    )
    (tmp_path / "train.py").write_text("")
    project = ProjectIndex(tmp_path)
    module = module_of(
        "from base import Mine\nt = Mine(model=1)\n", "train", project, str(tmp_path / "train.py")
    )
    assert module.is_subclass(module.type_of(last_call(module)), "transformers.Trainer")
    assert [name for name, _ in module.facts.trainers] == ["base.Mine"]


@pytest.mark.parametrize(
    ("docstring", "words"),
    [
        ("Train.\n\naccelerate launch --num_processes 8 train.py --lr 1", ["accelerate launch"]),
        ("Train.\n\ntorchrun --nproc_per_node 2 train.py", ["torchrun"]),
        ("Train.\n\npython -m torch.distributed.run train.py", ["torch.distributed.run"]),
        ("Train.\n\npython train.py", []),
    ],
)
def test_usage_in_the_docstring_is_launcher_evidence(docstring: str, words: list[str]) -> None:
    module = module_of(f'"""{docstring}"""\nimport torch\n')
    assert [item.what for item in module.facts.launcher_evidence] == words
