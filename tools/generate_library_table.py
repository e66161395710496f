"""Write ``server/ranksafe/semantics/library_table.json`` from the installed libraries.

Run it with a Python that has torch, transformers, accelerate and trl; the server itself never imports them.
For every public name of the modules below the table holds its aliases (other dotted names under which it can be
imported) and, for classes, all public ancestors.
"""

from __future__ import annotations

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


def main() -> int:
    """Collect and write the table."""
    canonical: dict[int, str] = {}
    objects: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    functions: set[str] = set()
    for module_name in MODULES:
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            print(f"{module_name}: not installed, left out", file=sys.stderr)
            continue
        for name in public_names(module):
            try:
                value = getattr(module, name)
            except Exception:  # a lazy name whose backend is missing
                continue
            if not (
                inspect.isclass(value) or inspect.isfunction(value) or inspect.isbuiltin(value)
            ):
                continue
            owner = getattr(value, "__module__", None) or ""
            if owner.split(".")[0] != module_name.split(".")[0]:
                continue
            public = f"{module_name}.{name}"
            first = canonical.setdefault(id(value), public)
            objects.setdefault(first, value)
            defined = f"{owner}.{getattr(value, '__qualname__', name)}"
            for alias in (public, defined):
                if alias != first and "<" not in alias:
                    aliases[alias] = first
            if not inspect.isclass(value):
                functions.add(first)
    classes: dict[str, list[str]] = {}
    for public, value in sorted(objects.items()):
        if inspect.isclass(value):
            classes[public] = [
                canonical.get(id(base), f"{base.__module__}.{base.__qualname__}")
                for base in value.__mro__[1:]
                if base is not object
            ]
    for name, ancestors in ALSO_KNOWN.items():
        classes.setdefault(name, ancestors)
    versions = {}
    for distribution in DISTRIBUTIONS:
        try:
            versions[distribution] = version(distribution)
        except PackageNotFoundError:
            continue
    for alias in list(aliases):
        if alias in classes or alias in functions:
            del aliases[alias]
    table = {
        "versions": versions,
        "aliases": dict(sorted(aliases.items())),
        "classes": classes,
        "functions": {name: [] for name in sorted(functions)},
    }
    OUTPUT.write_text(json.dumps(table, indent=0, sort_keys=True) + "\n", "utf-8")
    print(
        f"{OUTPUT.name}: {len(aliases)} aliases, {len(classes)} classes, {len(functions)} functions"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
