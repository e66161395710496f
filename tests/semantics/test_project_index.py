"""The project index: the same answers whatever was asked before, however far it was built, from whatever store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from ranksafe.semantics.project import summary_store
from ranksafe.semantics.project.changes import Change
from ranksafe.semantics.project.index import ProjectIndex

FILES = (
    "train.py",
    "model.py",
    "pkg/__init__.py",
    "pkg/layers.py",
    "pkg/sub/__init__.py",
    "pkg/sub/deep.py",
    "src/library.py",
    "code/inner/__init__.py",
    "code/inner/part.py",
    "code/run.py",
)
STATEMENTS = (
    "import torch\nfrom torch import nn",
    "import pkg",
    "import pkg.sub.deep",
    "import pkg.layers as layers",
    "from pkg import sub",
    "from pkg import *",
    "from pkg.layers import Thing, LIMIT",
    "from pkg.sub.deep import Thing as Other",
    "from . import sub",
    "from .layers import Thing",
    "from .sub import *",
    "from ..layers import Thing as Upper",
    "from model import Thing",
    "import library",
    "from library import LIMIT",
    "from inner.part import Thing",
    "import inner",
    "try:\n    from model import Other\nexcept ImportError:\n    from library import Other",
    "def late():\n    from pkg.sub.deep import Thing\n    return Thing()",
    "class Thing(torch.nn.Module):\n    def __init__(self):\n        self.part = Other()",
    "class Thing(Other):\n    pass",
    "class Other(pkg.layers.Thing):\n    pass",
    "class Other:\n    def build(self):\n        return sub.deep.Thing()",
    "Thing = Other",
    "Other = layers.Thing",
    "LIMIT = 4",
    "LIMIT = 'x'",
    "__all__ = ['Thing']",
    "def late(): ...",
    "if __name__ == '__main__':\n    torch.nn.DataParallel(Thing())",
    "if __name__ == '__main__':\n    from transformers import Trainer\n    Trainer(model=Other()).train()",
    "def broken(:",
)
WORDS = ("DataParallel", "Trainer", "LIMIT")
LAST = ("Thing", "Other", "LIMIT", "late", "sub.deep.Thing", "layers.Thing", "part.Thing")


@pytest.fixture(autouse=True)
def _kept_from_the_first_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_store, "WORTH_A_FILE", 1)


@dataclass
class World:
    """A project on disk with some files open in an editor."""

    root: Path
    random: random.Random
    opened: dict[Path, str] = field(default_factory=dict)

    def new_text(self) -> str:
        count = self.random.randrange(1, 7)
        return "\n".join(self.random.choices(STATEMENTS, k=count)) + "\n"

    def edit(self) -> list[tuple[Path, str | None]]:
        """Change something; what an editor or a file watcher would tell of it."""
        path = self.root / self.random.choice(FILES)
        kind = self.random.choice(["write", "write", "open", "open", "close", "delete", "rename"])
        if kind == "open":
            self.opened[path] = self.new_text()
            return [(path, self.opened[path])]
        if kind == "close" and self.opened:
            path = self.random.choice(sorted(self.opened))
            del self.opened[path]
            return [(path, None)]
        if kind == "delete" and path.exists():
            path.unlink()
            return [(path, self.opened.get(path))]
        if kind == "rename" and path.exists():
            target = self.root / self.random.choice(FILES)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.replace(target)
            return [(path, self.opened.get(path)), (target, self.opened.get(target))]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.new_text())
        return [(path, self.opened.get(path))]

    def index(self, store: Path | None = None) -> ProjectIndex:
        index = ProjectIndex(self.root, store_folder=store)
        for path, text in self.opened.items():
            index.update(path, text)
        return index


def answers(index: ProjectIndex, names: list[str]) -> dict[str, Any]:
    """What rules may ask."""
    found: dict[str, Any] = {}
    for name in names:
        found[name] = (
            index.resolve(name),
            index.is_class(name),
            index.bases(name),
            index.constant_source(name),
            index.definition_file(name),
            index.export(name.rpartition(".")[0], name.rpartition(".")[2]),
            index.trains_with_trainer(name),
            index.wraps_data_parallel(name),
        )
    return found


def names_in(root: Path) -> list[str]:
    modules = [name.removesuffix(".py").replace("/", ".") for name in FILES]
    modules = [module.removesuffix(".__init__") for module in modules] + ["inner", "inner.part"]
    return [*modules, *(f"{module}.{last}" for module in modules for last in LAST)]


def all_answers(index: ProjectIndex) -> dict[str, Any]:
    found = answers(index, names_in(index.root))
    for name in FILES:
        path = index.root / name
        found[name] = (
            index.module_name(path),
            index.closure(path),
            index.text_of(path),
            [index.import_name(str(path), module) for module in ("pkg", "inner.part", "model")],
            [index.users_mention(path, word) for word in WORDS],
            [index.users_saying(path, word, asker=path) for word in WORDS],
            index.launches_of(path),
        )
    return found


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_a_fresh_index(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path / "project", random.Random(seed))
    store = tmp_path / "store"
    lasting = world.index(store)
    build: Iterator[object] = iter(())
    for step in range(30):
        for path, text in world.edit():
            lasting.update(path, text)
        if step % 4 == 0:
            build = lasting.build()
        list(islice(build, world.random.randrange(12)))
        answers(lasting, world.random.sample(names_in(world.root), 5))
        if step % 3 == 0:
            expected = all_answers(world.index())
            assert all_answers(lasting) == expected
            lasting.store.flush(lasting.files())
            assert all_answers(world.index(store)) == expected


@pytest.mark.parametrize("seed", range(12))
def test_a_file_that_sees_something_else_is_affected(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path, random.Random(1_000 + seed))
    for _ in range(12):
        world.edit()
    write(world.root, "run.sh", "torchrun train.py\n")
    index = world.index()
    watched = [world.root / name for name in FILES]
    for _ in range(25):
        before = {path: seen_from(index, path) for path in watched}
        changes: list[Change] = []
        for _ in range(world.random.randrange(1, 3)):
            changes += [index.update(path, text) for path, text in world.edit()]
        affected = index.affected(changes, watched)
        changed = {change.path for change in changes}
        fresh = world.index()
        for path in watched:
            if path not in affected and path not in changed:
                assert seen_from(fresh, path) == before[path], path


def seen_from(index: ProjectIndex, path: Path) -> dict[str, Any]:
    """What the analysis of a file can see of the others: from the names that it imports."""
    index.closure(path)
    module = index.module_name(path)
    names = [f"{module}.{last}" for last in LAST if "." not in last]
    for name in index.imports_of(path):
        base = name.removesuffix(".*")
        is_star = base != name
        for last in LAST:
            # A star import brings what the module binds, and nothing of its folder.
            if not is_star or index.export(base, last.partition(".")[0]) is not None:
                names.append(f"{base}.{last}")
    found = answers(index, names)
    for name in names:
        definition = index.definition_file(name)
        if definition is not None:
            found[f"text of {name}"] = index.text_of(definition[1])
    found["self"] = (module, index.trains_with_trainer(module), index.wraps_data_parallel(module))
    found["users"] = [index.users_mention(path, word) for word in WORDS]
    found["what users say"] = [
        (user, index.text_of(user))
        for word in WORDS
        for user in index.users_saying(path, word, asker=path)
    ]
    found["launch"] = index.launches_of(path)
    return found


def test_users_of_a_file_that_say_a_word(tmp_path: Path) -> None:
    helper = write(tmp_path, "data/helper.py", "def loader(): ...\n")
    package = write(tmp_path, "data/__init__.py", "from data.helper import loader\n")
    train = write(tmp_path, "train.py", "from data import loader\nloader()\n")
    write(tmp_path, "other.py", "loader = None\n")
    write(tmp_path, "plain.py", "import data\n")
    index = ProjectIndex(tmp_path)
    assert index.users_saying(helper, "loader", asker=helper) == [package, train]
    assert index.users_saying(train, "loader", asker=train) == []
    change = index.update(train, "from data import loader\nfor batch in loader(): ...\n")
    assert index.affected([change], [helper]) == {helper}


def test_what_users_of_a_file_say(tmp_path: Path) -> None:
    helper = write(
        tmp_path, "data/helper.py", "def sampler(): ...\n# set_epoch is not called here\n"
    )
    between = write(tmp_path, "between.py", "from data.helper import sampler\n")
    write(tmp_path, "train.py", "from between import sampler\nsampler().set_epoch(1)\n")
    other = write(tmp_path, "other.py", "import torch\n")
    index = ProjectIndex(tmp_path)
    assert index.users_mention(helper, "set_epoch")
    assert index.users_mention(between, "set_epoch")
    assert not index.users_mention(other, "set_epoch")

    change = index.update(between, "sampler = 1\n")
    assert index.affected([change], [helper, other]) >= {helper}
    assert not index.users_mention(helper, "set_epoch")


COMMANDS = {
    "torchrun": "torchrun --nproc_per_node=8 tools/train.py --lr 1\n",
    "over lines": "python -m torch.distributed.launch \\\n  --nproc_per_node $GPUS \\\n  tools/train.py\n",
    "accelerate": "accelerate launch --config_file fsdp.yaml $HOME/code/tools/train.py\n",
    "deepspeed": "cd x && deepspeed --num_gpus 4 ./tools/train.py --deepspeed_config ds.json\n",
    "a module": "torchrun --standalone -m tools.train\n",
    "two GPUs": "CUDA_VISIBLE_DEVICES=0,1 deepspeed tools/train.py\n",
    "several processes, asked for": "CUDA_VISIBLE_DEVICES=0 torchrun --nproc_per_node 2 tools/train.py\n",
}
OTHER_COMMANDS = {
    "plain python": "python tools/train.py\n",
    "one process": "torchrun --nproc_per_node=1 tools/train.py\n",
    "one process by a variable": "export NGPU=1\ntorchrun --nproc_per_node=${NGPU} tools/train.py\n",
    "one process by the options' file": "accelerate launch --config_file one.yaml tools/train.py\n",
    "one GPU": "CUDA_VISIBLE_DEVICES=5 deepspeed tools/train.py --deepspeed_config ds.json\n",
    "one GPU, exported": "export CUDA_VISIBLE_DEVICES=0\naccelerate launch tools/train.py\n",
    "an option": "python tools/train.py --deepspeed ds.json && python tools/train.py\n",
    "another script": "torchrun tools/evaluate.py\n",
    "a module of a library": "torchrun -m other.train\n",
    "prose": "Start it with torchrun.\n",
}


def _places(index: ProjectIndex, path: Path) -> list[tuple[Path, int]]:
    return [(command.file, command.line) for command in index.launches_of(path)]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("name", ["scripts/run.sh", "README.md", "job.slurm", "Makefile"])
def test_a_command_that_starts_a_script_and_what_it_imports(
    tmp_path: Path, command: str, name: str
) -> None:
    script = write(tmp_path, "tools/train.py", "from helper import save\n")
    helper = write(tmp_path, "helper.py", "def save(): ...\n")
    other = write(tmp_path, "other.py", "import torch\n")
    file = write(tmp_path, name, f"# how to start it\n\n{command}")
    index = ProjectIndex(tmp_path)
    assert _places(index, script) == _places(index, helper) == [(file, 3)]
    assert index.launches_of(other) == []


def test_a_command_starts_what_a_package_imports_and_not_all_that_lies_in_it(
    tmp_path: Path,
) -> None:
    write(tmp_path, "tools/train.py", "import pack\nfrom pack.parts import layer\n")
    write(tmp_path, "run.sh", "torchrun tools/train.py\n")
    package = write(tmp_path, "pack/__init__.py", "from . import core\n")
    core = write(tmp_path, "pack/core.py", "import torch\n")
    around = write(tmp_path, "pack/parts/__init__.py", "import torch\n")
    layer = write(tmp_path, "pack/parts/layer.py", "import torch\n")
    script = write(tmp_path, "pack/parts/compare.py", "import torch\n")
    index = ProjectIndex(tmp_path)
    for file in (package, core, around, layer):
        assert _places(index, file) == [(tmp_path / "run.sh", 1)]
    assert index.launches_of(script) == []
    index.update(core, "from pack.parts import compare\n")
    assert _places(index, script) == [(tmp_path / "run.sh", 1)]


@pytest.mark.parametrize("command", OTHER_COMMANDS.values(), ids=OTHER_COMMANDS)
def test_commands_that_start_one_process(tmp_path: Path, command: str) -> None:
    script = write(tmp_path, "tools/train.py", "import torch\n")
    write(tmp_path, "run.sh", command)
    write(tmp_path, "one.yaml", "distributed_type: 'NO'\nnum_processes: 1\n")
    assert ProjectIndex(tmp_path).launches_of(script) == []


def test_whether_commands_start_any_script(tmp_path: Path) -> None:
    script = write(tmp_path, "train.py", "import torch\n")
    write(tmp_path, "other.py", "import torch\n")
    assert not ProjectIndex(tmp_path).launches_any(script)
    write(tmp_path, "run.sh", "accelerate launch other.py\n")
    assert ProjectIndex(tmp_path).launches_any(script)
    assert ProjectIndex(tmp_path).plain_start_of(script) is None


def test_a_script_that_may_be_one_of_two_is_neither(tmp_path: Path) -> None:
    first = write(tmp_path, "a/train.py", "import torch\n")
    second = write(tmp_path, "b/train.py", "import torch\n")
    write(tmp_path, "docs/start.md", "    torchrun train.py\n")
    index = ProjectIndex(tmp_path)
    assert index.launches_of(first) == index.launches_of(second) == []
    write(tmp_path, "b/run.sh", "torchrun train.py\n")
    index = ProjectIndex(tmp_path)
    assert index.launches_of(first) == []
    assert _places(index, second) == [(tmp_path / "b/run.sh", 1)]


def test_an_edit_reaches_those_who_import_the_file_and_nobody_else(tmp_path: Path) -> None:
    write(tmp_path, "helper.py", "def wait(): ...\n")
    write(tmp_path, "between.py", "from helper import wait\n")
    write(tmp_path, "user.py", "import torch\n\ndef main():\n    from between import wait\n")
    write(tmp_path, "other.py", "import torch\n")
    index = ProjectIndex(tmp_path)
    opened = [tmp_path / "user.py", tmp_path / "other.py"]
    for path in opened:
        index.update(path, path.read_text())
    index.affected([], opened)
    assert index.closure(opened[0]) == {tmp_path / "between.py", tmp_path / "helper.py"}
    assert index.constant_source("helper.wait") is None

    change = index.update(tmp_path / "helper.py", "def wait(): return 1\n")
    assert (change.text, change.summary, change.files) == (True, False, False)
    assert index.affected([change], opened) == {opened[0]}

    change = index.update(tmp_path / "helper.py", "def wait(): return 1\n")
    assert not change
    assert index.affected([change], opened) == set()


def test_opening_a_file_as_it_stands_on_disk_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "helper.py", "LIMIT = 1\n")
    index = ProjectIndex(tmp_path)
    assert index.constant_source("helper.LIMIT") == "1"
    assert not index.update(path, "LIMIT = 1\n")
    assert index.update(path, "")
    assert index.text_of(path) == ""
    assert index.constant_source("helper.LIMIT") is None
    assert index.update(path, None).summary


def test_a_file_that_trains_a_model_reaches_the_model_that_it_imports(tmp_path: Path) -> None:
    model = write(tmp_path, "model.py", "import torch\nclass Model(torch.nn.Module): ...\n")
    user = write(tmp_path, "user.py", "import torch\n")
    index = ProjectIndex(tmp_path)
    assert not index.wraps_data_parallel("model")
    change = index.update(
        user, "import torch\nfrom model import Model\ntorch.nn.DataParallel(Model())\n"
    )
    assert index.affected([change], [model]) == {model}
    assert index.wraps_data_parallel("model")
    assert index.affected([index.update(user, None)], [model]) == {model}
    assert not index.wraps_data_parallel("model")


def test_a_definition_is_found_through_re_exports(tmp_path: Path) -> None:
    write(tmp_path, "pkg/__init__.py", "from .sync import wait_for_all as wait, Group\n")
    sync = write(tmp_path, "pkg/sync.py", "def wait_for_all(): ...\nclass Group: ...\n")
    index = ProjectIndex(tmp_path)
    assert index.definition_file("pkg.wait") == ("pkg.sync", sync)
    assert index.definition_file("pkg.Group.barrier") == ("pkg.sync", sync)
    assert index.definition_file("pkg.nothing") is None
    assert index.definition_file("torch.nn.Linear") is None
    assert index.text_of(sync) == sync.read_text()
    assert index.text_of(tmp_path / "missing.py") is None


def test_a_constant_is_found_through_re_exports(tmp_path: Path) -> None:
    write(tmp_path, "helper.py", 'WHERE = "auto"\n')
    write(tmp_path, "between.py", "from helper import WHERE as PLACE\n")
    write(tmp_path, "all.py", "from between import *\nfrom helper import *\n")
    index = ProjectIndex(tmp_path)
    for name in ("helper.WHERE", "between.PLACE", "all.PLACE", "all.WHERE"):
        assert index.constant_source(name) == "'auto'", name
    assert index.constant_source("between.WHERE") is None


@pytest.mark.parametrize(
    "more",
    [
        "WHERE = choose()",
        "if few:\n    WHERE = None",
        "for WHERE in places: ...",
        "with place() as (WHERE, _): ...",
        "try:\n    from local import WHERE\nexcept ImportError: ...",
        "WHERE += '0'",
        "def WHERE(): ...",
        "def f():\n    if f:\n        global WHERE\n        WHERE = None",
    ],
)
def test_a_name_bound_twice_is_no_constant(tmp_path: Path, more: str) -> None:
    write(tmp_path, "helper.py", f'WHERE = "auto"\nWHERE_ELSE: str\n{more}\n')
    assert ProjectIndex(tmp_path).constant_source("helper.WHERE") is None


def test_packages_that_import_all_from_each_other_are_searched_once(tmp_path: Path) -> None:
    read: list[Path] = []
    names = [f"part_{number}" for number in range(12)]
    everything = "".join(f"from {name} import *\n" for name in names)
    for name in names:
        write(tmp_path, f"{name}.py", f"{everything}def of_{name}(): ...\n")
    write(tmp_path, "part_11.py", f"{everything}__all__ = []\ndef of_part_11(): ...\n")
    index = ProjectIndex(tmp_path)
    index.texts.note = read.extend  # type: ignore[method-assign]
    assert index.resolve("part_0.nowhere") == "part_0.nowhere"
    assert index.resolve("part_0.of_part_10") == "part_10.of_part_10"
    assert index.resolve("part_0.of_part_11") == "part_0.of_part_11"
    # By every way that there is, it would be billions.
    assert len(read) < 500


def test_what_is_imported_may_change_while_it_is_being_found_out(tmp_path: Path) -> None:
    user = write(tmp_path, "user.py", "import between\n")
    between = write(tmp_path, "between.py", "import first\n")
    write(tmp_path, "first.py", "import other\n")
    write(tmp_path, "other.py", "")
    second = write(tmp_path, "second.py", "")
    index = ProjectIndex(tmp_path)
    assert len(index.files()) == 5
    steps = index.closure_steps(user)
    assert [next(steps), next(steps)] == [1, 2]
    index.update(between, "import second\n")
    assert list(steps)
    assert index.closure(user) == {between, second}


def test_a_file_that_comes_while_the_list_is_made_is_in_it(tmp_path: Path) -> None:
    first = write(tmp_path, "a/first.py", "")
    last = write(tmp_path, "z/last.py", "")
    index = ProjectIndex(tmp_path)
    steps = index.build()
    assert [next(steps), next(steps)] == [(0, 1), (0, 2)]
    index.update(write(tmp_path, "a/new.py", "LIMIT = 1\n"))
    first.unlink()
    index.update(first)
    for _ in steps:
        pass
    assert index.files() == [tmp_path / "a" / "new.py", last]


def test_a_package_imported_as_a_whole_is_gone_through_once(tmp_path: Path) -> None:
    asked: list[str] = []
    for number in range(60):
        write(tmp_path, f"pkg/part_{number}.py", "import pkg\nfrom pkg import nothing\n")
    write(tmp_path, "pkg/__init__.py", "")
    user = write(tmp_path, "user.py", "import pkg\n")
    index = ProjectIndex(tmp_path)
    below = index.modules.below
    index.modules.below = lambda package: (asked.append(package), below(package))[1]  # type: ignore[method-assign]
    assert len(index.closure(user)) == 61
    assert asked == ["pkg"]


def test_deleted_new_and_renamed_files(tmp_path: Path) -> None:
    user = write(tmp_path, "user.py", "from helper import LIMIT\n")
    helper = write(tmp_path, "helper.py", "LIMIT = 1\n")
    index = ProjectIndex(tmp_path)
    assert index.files() == [helper, user]
    assert index.constant_source("helper.LIMIT") == "1"
    assert index.affected([], [user]) == set()

    moved = helper.rename(tmp_path / "moved.py")
    changes = [index.update(helper), index.update(moved)]
    assert [change.files for change in changes] == [True, True]
    assert user in index.affected(changes, [user])
    assert index.files() == [moved, user]
    assert index.constant_source("helper.LIMIT") is None
    assert index.constant_source("moved.LIMIT") == "1"

    write(tmp_path, "helper/__init__.py", "LIMIT = 2\n")
    change = index.update(tmp_path / "helper" / "__init__.py")
    assert user in index.affected([change], [user])
    assert index.constant_source("helper.LIMIT") == "2"


def test_links_that_lead_back_are_not_followed(tmp_path: Path) -> None:
    real = write(tmp_path, "pkg/part.py", "LIMIT = 1\n")
    try:
        (tmp_path / "pkg" / "again").symlink_to(tmp_path, target_is_directory=True)
        (tmp_path / "pkg" / "self.py").symlink_to(tmp_path / "pkg" / "self.py")
    except OSError:
        pytest.skip("this file system has no links")
    index = ProjectIndex(tmp_path)
    assert real in index.files()
    assert len(index.files()) <= 2
    for _ in index.build():
        pass
    assert index.constant_source("pkg.part.LIMIT") == "1"
    assert index.constant_source("pkg.self.LIMIT") is None


def test_folders_of_environments_do_not_belong_to_the_project(tmp_path: Path) -> None:
    index = ProjectIndex(tmp_path)
    assert index.files() == []
    for name in (".venv/lib/a.py", "node_modules/b.py", ".hidden/c.py"):
        assert not index.update(write(tmp_path, name, "LIMIT = 1\n")).files
    assert index.files() == []
    assert index.update(write(tmp_path, "d.py", "")).files


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_all_files_that_say_a_word(tmp_path: Path) -> None:
    loader = write(tmp_path, "look.py", "load('last.pth')\n")
    saver = write(tmp_path, "train.py", "save(state, 'last.pth')\n")
    other = write(tmp_path, "other.py", "# save(state, 'last.pth')\n")
    index = ProjectIndex(tmp_path)
    assert index.files_saying("last.pth", asker=loader) == [loader, saver]
    change = index.update(saver, "save(state.cpu(), 'last.pth')\n")
    assert index.affected([change], [loader, other]) == {loader}
    change = index.update(other, "save(state, 'last.pth')\n")
    assert index.affected([change], [loader]) == {loader}
    assert index.files_saying("last.pth", asker=loader) == [loader, other, saver]
