"""Write ``server/ranksafe/semantics/library_table.json`` from the installed libraries.

Run it with a Python that has torch, transformers, accelerate and trl; the server itself never imports them.
For every public name of the modules below the table holds its aliases (other dotted names under which it can be
imported) and, for classes, all public ancestors.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

# Order decides which of several public names is canonical: earlier modules win.
MODULES = (
    "torch",
    "torch.nn",
    "torch.nn.functional",
    "torch.nn.parallel",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.utils.data",
    "torch.utils.data.distributed",
    "torch.utils.checkpoint",
    "torch.distributed",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
    "torch.distributed.tensor.parallel",
    "torch.distributed.device_mesh",
    "torch.distributed.elastic.multiprocessing.errors",
    "torch.multiprocessing",
    "torch.cuda",
    "torch.cuda.amp",
    "accelerate",
    "accelerate.utils",
    "transformers",
    "trl",
    "peft",
)
DISTRIBUTIONS = ("torch", "transformers", "accelerate", "trl", "peft")
# Classes of other packages and of other versions than the installed ones, from their published sources.
_TRAINER = ["transformers.Trainer"]
ALSO_KNOWN = {
    **{
        f"trl.{name}": _TRAINER  # trl 0.9 to 0.25
        for name in (
            "BCOTrainer", "CPOTrainer", "GKDTrainer", "IterativeSFTTrainer", "NashMDTrainer", "ORPOTrainer",
            "OnlineDPOTrainer", "PRMTrainer", "XPOTrainer",
        )
    },
    "adapters.AdapterTrainer": _TRAINER,  # adapters 0.1 to 1.3
    "adapters.Seq2SeqAdapterTrainer": ["transformers.Seq2SeqTrainer", *_TRAINER],
    "adapters.AutoAdapterModel": ["transformers.PreTrainedModel", "torch.nn.Module"],
    "sentence_transformers.SentenceTransformerTrainer": _TRAINER,
    "peft.PeftModel": ["torch.nn.Module"],
    "pytorch_lightning.LightningModule": ["torch.nn.Module"],
    "lightning.LightningModule": ["torch.nn.Module"],
}  # fmt: skip
TRANSFORMERS_ENDINGS = ("Trainer", "TrainingArguments", "PreTrainedModel", "Callback", "Config")
TRANSFORMERS_STARTS = (
    "Auto",
    "DataCollator",
    "BitsAndBytes",
    "HfArgumentParser",
    "TrainerCallback",
)
OUTPUT = Path(__file__).parents[1] / "server" / "ranksafe" / "semantics" / "library_table.json"


def public_names(module: ModuleType) -> list[str]:
    """Names that users import from the module."""
    names = [name for name in dir(module) if not name.startswith("_")]
    if module.__name__ == "transformers":
        # Loading each of the thousands of lazy names would import every model.
        names = [
            name
            for name in names
            if name.startswith(TRANSFORMERS_STARTS)
            or (name.endswith(TRANSFORMERS_ENDINGS) and not name.endswith("Config"))
            or name in ("set_seed", "pipeline", "get_scheduler", "PretrainedConfig")
        ]
    return names


class Names:
    """Public names of the libraries, as their modules are read one after the other."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.functions: set[str] = set()
        self._canonical: dict[int, str] = {}
        self._objects: dict[str, Any] = {}

    def read(self, module: ModuleType) -> None:
        package = module.__name__.split(".")[0]
        for name in public_names(module):
            try:
                value = getattr(module, name)
            except Exception:  # a lazy name whose backend is missing
                continue
            owner = getattr(value, "__module__", None) or ""
            if _is_definition(value) and owner.split(".")[0] == package:
                self._add(f"{module.__name__}.{name}", owner, value)

    def _add(self, public: str, owner: str, value: Any) -> None:
        first = self._canonical.setdefault(id(value), public)
        self._objects.setdefault(first, value)
        for alias in (public, f"{owner}.{getattr(value, '__qualname__', '<unnamed>')}"):
            if alias != first and "<" not in alias:
                self.aliases[alias] = first
        if not inspect.isclass(value):
            self.functions.add(first)

    def classes(self) -> dict[str, list[str]]:
        """Every class with its ancestors, nearest first."""
        return {
            public: [
                self._canonical.get(id(base), f"{base.__module__}.{base.__qualname__}")
                for base in value.__mro__[1:]
                if base is not object
            ]
            for public, value in sorted(self._objects.items())
            if inspect.isclass(value)
        }


def _is_definition(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value) or inspect.isbuiltin(value)


def collect() -> dict[str, Any]:
    """The table for the installed libraries."""
    names = Names()
    for module_name in MODULES:
        try:
            names.read(importlib.import_module(module_name))
        except ImportError:
            print(f"{module_name}: not installed, left out", file=sys.stderr)
    classes = names.classes()
    for name, ancestors in ALSO_KNOWN.items():
        classes.setdefault(name, ancestors)
    versions = {}
    for distribution in DISTRIBUTIONS:
        with contextlib.suppress(PackageNotFoundError):
            versions[distribution] = version(distribution)
    defined = classes.keys() | names.functions
    return {
        "versions": versions,
        "aliases": {key: value for key, value in names.aliases.items() if key not in defined},
        "classes": classes,
        "functions": {name: [] for name in names.functions},
    }


def main(arguments: list[str]) -> int:
    """Write the table; with ``--check`` only say whether it is what would be written."""
    table = collect()
    text = json.dumps(table, indent=0, sort_keys=True) + "\n"
    if arguments == ["--check"]:
        current = OUTPUT.read_text("utf-8") == text
        print(f"{OUTPUT.name}: {'current' if current else 'out of date'} for {table['versions']}")
        return 0 if current else 1
    OUTPUT.write_text(text, "utf-8")
    print(f"{OUTPUT.name}: {len(table['aliases'])} aliases, {len(table['classes'])} classes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
