"""Which arguments of a script are known to decide its memory, and how they are typed with another value."""

from __future__ import annotations

import json
import shlex
import textwrap
from pathlib import Path
from typing import Any

import pytest
from ranksafe.runs import fit_arguments
from ranksafe.runs.fit_arguments import Argument, Exposed, What, exposed
from ranksafe.source.text import SourceText

TABLE = json.loads(Path(fit_arguments.__file__).with_suffix(".json").read_text(encoding="utf-8"))


def declared(tmp_path: Path, script: str, *words: str) -> Exposed:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(script), encoding="utf-8")
    return exposed(path, words)


@pytest.mark.parametrize("row", TABLE["arguments"], ids=lambda row: str(row["names"][0]))
def test_every_row_is_found_in_its_example(row: dict[str, Any]) -> None:
    assert row["source"]
    words = shlex.split(row["example"])
    found = exposed(None, words)
    what = What(row["what"])
    if "values" not in row:
        argument = found.numbers[what]
        again = exposed(None, argument.set_in(words, "3")).numbers[what]
        assert (again.value, again.form, again.at) == ("3", argument.form, 0)
        return
    # The example turns it on: nothing is left to do. Off, it can be turned on.
    assert found == Exposed({}, {})
    for off, on in row["values"].items():
        off_words = ["--" + row["names"][0], off]
        argument, value = exposed(None, off_words).turned_on[what]
        assert value == on
        assert exposed(None, argument.set_in(off_words, value)) == Exposed({}, {})


def test_what_argparse_and_click_declare_has_its_default(tmp_path: Path) -> None:
    found = declared(
        tmp_path,
        """
        parser.add_argument("-b", "--batch-size", type=int, default=32)
        parser.add_argument("--grad-accum-steps", default=2 * 2, type=int)
        parser.add_argument("--amp", action="store_true")
        parser.add_argument("--gradient_checkpointing", action="store_true", default=True)
        parser.add_argument("--seq-len", type=int, default=LENGTH)
        click.option("--max-seq-length", default=512)
        """,
        "data",
    )
    batch, times = found.numbers[What.MICRO_BATCH], found.numbers[What.ACCUMULATION]
    assert (batch.value, times.value) == ("32", "4")
    assert batch.set_in(["data"], "8") == ["data", "--batch-size", "8"]
    amp, value = found.turned_on[What.PRECISION]
    assert amp.set_in([], value) == ["--amp"]
    assert What.CHECKPOINTING not in found.turned_on
    assert found.numbers[What.LENGTH].spelling == "--max-seq-length"


def test_what_is_given_counts_before_what_is_declared(tmp_path: Path) -> None:
    script = "parser.add_argument('--batch_size', type=int, default=32)"
    words = ["--batch_size", "4", "--name", "x", "--batch_size=16"]
    batch = declared(tmp_path, script, *words).numbers[What.MICRO_BATCH]
    assert batch.set_in(words, "2") == ["--batch_size", "4", "--name", "x", "--batch_size=2"]


def test_fields_of_classes_are_arguments(tmp_path: Path) -> None:
    found = declared(
        tmp_path,
        """
        from transformers import HfArgumentParser, TrainingArguments

        @dataclass
        class Data:
            max_seq_length: int = field(default=1024, metadata={})

        class Ours(TrainingArguments):
            gradient_accumulation_steps: int = 4

        parser = HfArgumentParser((Data, Ours))
        """,
        "--bf16",
    )
    assert {what.value: each.value for what, each in found.numbers.items()} == {
        "micro-batch": "8",
        "accumulation": "4",
        "length": "1024",
    }
    # fp16 is off, but bf16 is on.
    assert list(found.turned_on) == [What.CHECKPOINTING]
    argument, value = found.turned_on[What.CHECKPOINTING]
    assert argument.set_in(["--bf16"], value) == ["--bf16", "--gradient_checkpointing", "True"]


def test_a_class_of_the_same_name_from_elsewhere_is_not_known(tmp_path: Path) -> None:
    script = "from ours import TrainingArguments\nHfArgumentParser(TrainingArguments)"
    assert declared(tmp_path, script) == Exposed({}, {})


def test_globals_that_a_file_sets_are_arguments(tmp_path: Path) -> None:
    script = """
    batch_size = 12
    gradient_accumulation_steps = 5 * 8
    exec(open("configurator.py").read())
    """
    found = declared(tmp_path, script, "config/train.py", "--batch_size=6").numbers
    assert found[What.MICRO_BATCH].set_in(["config/train.py", "--batch_size=6"], "3") == [
        "config/train.py",
        "--batch_size=3",
    ]
    assert found[What.ACCUMULATION].set_in([], "80") == ["--gradient_accumulation_steps=80"]
    assert declared(tmp_path, script.replace("exec(open", "print((")) == Exposed({}, {})


def test_what_cannot_be_read_exposes_what_is_given(tmp_path: Path) -> None:
    assert declared(tmp_path, "def (:", "--batch_size", "no") == Exposed({}, {})
    assert exposed(tmp_path / "gone.py", ["batch_size=4"]).numbers[What.MICRO_BATCH].number == 4


def test_a_default_is_edited_where_the_script_writes_it(tmp_path: Path) -> None:
    script = """
    from transformers import HfArgumentParser, TrainingArguments

    @dataclass
    class Data:
        数据: str = "训练"; max_seq_length: int = field(default=512)

    parser.add_argument("--batch-size", type=int, default=8 * 4)
    parser.add_argument("--mixed_precision", default='no')
    parser.add_argument("--gradient_checkpointing", action="store_true")
    HfArgumentParser((Data,))
    """
    found = declared(tmp_path, script)
    source = SourceText((tmp_path / "train.py").read_text(encoding="utf-8"))

    def edited(argument: Argument, value: str) -> str:
        assert argument.literal is not None
        text = source.edited([argument.literal.set_to(value)])
        (line,) = set(text.splitlines()) - set(source.text.splitlines())
        return line.strip()

    batch = found.numbers[What.MICRO_BATCH]
    assert edited(batch, "16") == 'parser.add_argument("--batch-size", type=int, default=16)'
    length = edited(found.numbers[What.LENGTH], "256")
    assert length == '数据: str = "训练"; max_seq_length: int = field(default=256)'
    precision = edited(*found.turned_on[What.PRECISION])
    assert precision == "parser.add_argument(\"--mixed_precision\", default='bf16')"
    assert found.turned_on[What.CHECKPOINTING][0].literal is None
    assert {"batch_size", "max_seq_length", "mixed_precision"} < found.keys

    # A library's class has its defaults elsewhere.
    found = declared(tmp_path, script.replace("(Data,)", "(Data, TrainingArguments)"))
    batch = found.numbers[What.MICRO_BATCH]
    assert (batch.key, batch.literal) == ("per_device_train_batch_size", None)


def test_what_calls_are_given_in_the_script_can_be_written_anew(tmp_path: Path) -> None:
    script = """
    from transformers import TrainingArguments as Arguments
    import torch.utils.data
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision='no')
    loader = torch.utils.data.DataLoader(rows, batch_size=64)
    arguments = Arguments(
        "out",
        per_device_train_batch_size=16,  # a comment
    )
    """
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(script), encoding="utf-8")
    assert exposed(path, ()) == Exposed({}, {})
    found = exposed(path, ("--seq-len", "512"), written=True)
    source = SourceText(path.read_text(encoding="utf-8"))

    def edited(argument: Argument, value: str) -> str:
        assert argument.literal is not None
        assert argument.set_in(["--seq-len", "512"], value) == ["--seq-len", "512"]
        text = source.edited([argument.literal.set_to(value)])
        (line,) = set(text.splitlines()) - set(source.text.splitlines())
        return line.strip()

    assert edited(found.numbers[What.MICRO_BATCH], "8") == (
        "per_device_train_batch_size=8,  # a comment"
    )
    times = found.numbers[What.ACCUMULATION]
    assert times.value == "1"
    assert edited(times, "2") == (
        "per_device_train_batch_size=16, gradient_accumulation_steps=2,  # a comment"
    )
    checkpointing = edited(*found.turned_on[What.CHECKPOINTING])
    assert "per_device_train_batch_size=16, gradient_checkpointing=True," in checkpointing
    assert found.numbers[What.LENGTH].at == 0

    def of(script: str) -> Exposed:
        path.write_text(script, encoding="utf-8")
        return exposed(path, (), written=True)

    accelerator = "from accelerate import Accelerator\nAccelerator(mixed_precision='no')\n"
    source = SourceText(accelerator)
    precision = edited(*of(accelerator).turned_on[What.PRECISION])
    assert precision == "Accelerator(mixed_precision='bf16')"
    lightning = "import lightning as L\nL.Trainer(precision=32)\n"
    source = SourceText(lightning)
    precision = edited(*of(lightning).turned_on[What.PRECISION])
    assert precision == 'L.Trainer(precision="bf16-mixed")'
    # Where a value could come from elsewhere, or two are meant, none is.
    loaders = "import torch\nfor rows in [1, 2]:\n    torch.DataLoader(rows, batch_size=2)\n"
    assert of(loaders).numbers[What.MICRO_BATCH].value == "2"
    assert not of(loaders + "torch.DataLoader(rows, batch_size=4)\n").numbers
    assert not of(loaders.replace("import torch", "import mine as torch")).numbers
    assert not of(loaders.replace("=2)", "=SIZE)")).numbers
    assert not of("from transformers import TrainingArguments\nTrainingArguments(**given)\n").keys
    assert not of("from mine import DataLoader\nDataLoader(rows, batch_size=4)\n").keys
