"""Whether every rank has a whole dataset, or something in the code gives each its share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ranksafe.semantics.module import Module
from ranksafe.semantics.units import callee_name

from ranksafe_rules._shared.origins import arguments_for
from ranksafe_rules.data.rank_values import differs
from ranksafe_rules.data.seeding import SEEDING

ITERABLE: Final = "torch.utils.data.IterableDataset"
"""Its data is not chosen by a loader's sampler."""

_MAXIMUM_DEPTH: Final = 5

_RANK_WORD: Final = re.compile(
    r"(?i)(?<![a-z])(rank|ranks|world_size|worldsize|num_replicas|num_shards?|shards?|shard_\w+|nranks|"
    r"num_processes|process_index|dp_size|dp_group)(?![a-z])|(?<![a-z])(local_|global_|get_|dp_)rank"
)
"""Words that speak of ranks and shares, also as parts of a name: ``args.rank``, ``get_rank()``, ``num_shards``."""

SHARDING: Final = re.compile(
    r"Sampler\s*\(|\bsampler\s*=(?!=)|batch_sampler|split_dataset_by_node|\.shard\(|nodesplitter|split_by_node|"
    r"\.prepare\(|prepare_data_loader|setup_dataloaders|MpDeviceLoader|ParallelLoader|::\s*(?:self\.|args\.)?world|"
    r"\[\s*(?:self\.|args\.)?(?:rank|local_rank)\s*:|\bJoin\(|sharding_filter|StreamingDataset"
)
"""Signs that somebody in the file gives each rank a share of the data."""

MODEL_PARALLEL: Final = re.compile(
    r"(?i)tensor_parallel|tensor_model_parallel|pipeline_parallel|parallelize_module|PipelineModule|\btp_size\b|"
    r"init_device_mesh|sequence_parallel|context_parallel|\bmpu\b"
)
"""Signs of ranks that have to see the same data."""

_WHOLE_LIBRARIES: Final = frozenset(
    {"torchvision", "torchaudio", "torchtext", "datasets", "torch", "numpy", "builtins", "sklearn"}
)
"""Their datasets know nothing of ranks by themselves."""
_SAME_DATASET: Final = frozenset(
    {
        "map",
        "filter",
        "select",
        "shuffle",
        "with_format",
        "set_format",
        "remove_columns",
        "train_test_split",
    }
    | {
        "rename_column",
        "with_transform",
        "select_columns",
        "batch",
        "take",
        "skip",
        "to",
        "flatten",
    }
)


def speaks_of_ranks(node: ast.AST) -> bool:
    """Whether a name, an attribute or a string in an expression speaks of ranks or shares."""
    for item in ast.walk(node):
        word = None
        if isinstance(item, ast.Name):
            word = item.id
        elif isinstance(item, ast.Attribute):
            word = item.attr
        elif isinstance(item, (ast.keyword, ast.arg)):
            word = item.arg
        elif isinstance(item, ast.Constant) and isinstance(item.value, str):
            word = item.value if len(item.value) < 40 else None
        if word is not None and _RANK_WORD.search(word):
            return True
    return False


def seeds_by_rank(module: Module) -> bool:
    """Whether each rank has random numbers of its own: then loaders that shuffle differ from rank to rank."""
    return any(
        speaks_of_ranks(argument) or differs(module, argument) is not None
        for name in SEEDING
        for call in module.calls_written(name)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
    )


def is_whole(module: Module, dataset: ast.expr, depth: int = _MAXIMUM_DEPTH) -> bool:
    """Whether it is known where a dataset comes from, and nothing on its way speaks of ranks; not for streams."""
    if depth == 0 or speaks_of_ranks(dataset):
        return False
    sources = [value.node for value in module.values(dataset).known]
    if isinstance(dataset, ast.Name):
        sources += arguments_for(module, dataset)
        if not sources:
            sources += module.flow.assigned_values(dataset)
    sources = [node for node in sources if not isinstance(node, ast.Constant)]
    if isinstance(dataset, ast.Subscript) and not sources:
        sources = [dataset.value]
    if not sources:
        sources = list(_unpacked(module, dataset))
    return bool(sources) and all(_is_whole(module, source, depth) for source in sources)


def _is_whole(module: Module, source: ast.expr, depth: int) -> bool:
    if speaks_of_ranks(source):
        return False
    if isinstance(source, (ast.Name, ast.Attribute, ast.Subscript)):
        return is_whole(module, source, depth - 1)
    if not isinstance(source, ast.Call):
        return isinstance(source, (ast.List, ast.ListComp, ast.Dict))
    if isinstance(source.func, ast.Attribute) and callee_name(source) in _SAME_DATASET:
        if module.qualified_name(source.func) is None:
            return is_whole(module, source.func.value, depth - 1)
    return _makes_a_whole(module, source, depth)


def _makes_a_whole(module: Module, call: ast.Call, depth: int) -> bool:
    name = module.qualified_name(call.func)
    streaming = module.argument(call, "streaming")
    if name is None or (streaming is not None and streaming.only_constant() is not False):
        return False
    if module.is_subclass(name, ITERABLE):
        return False
    cls = module.class_named(name)
    if cls is not None:
        return _is_class_of_wholes(module, cls)
    found = module.project_definition(name)
    if found is not None:
        other, definition = found
        if isinstance(definition, ast.ClassDef):
            return _is_class_of_wholes(other, definition)
        given = [item.value for item in other.returns_of(definition) if item.value is not None]
        return bool(given) and all(is_whole(other, item, depth - 1) for item in given)
    if name.partition(".")[0] not in _WHOLE_LIBRARIES:
        return False
    return all(
        _holds_no_share(module, argument, depth)
        for argument in (*call.args, *(keyword.value for keyword in call.keywords))
    )


def _is_class_of_wholes(module: Module, cls: ast.ClassDef) -> bool:
    """Whether neither the class nor its bases speak of ranks; a base that cannot be read may."""
    if any(speaks_of_ranks(statement) for statement in module.body_of(cls)):
        return False
    for base in cls.bases:
        name = module.qualified_name(base.value if isinstance(base, ast.Subscript) else base)
        own = module.class_named(name)
        if own is not None and own is not cls:
            if not _is_class_of_wholes(module, own):
                return False
        elif name is None or name.partition(".")[0] not in (*_WHOLE_LIBRARIES, "typing"):
            return False
    return True


def _holds_no_share(module: Module, argument: ast.expr, depth: int) -> bool:
    """Whether what a dataset is made of speaks of ranks nowhere; settings need not be known."""
    if depth == 0 or speaks_of_ranks(argument):
        return False
    for name in ast.walk(argument):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load):
            for value in (*module.flow.assigned_values(name), *arguments_for(module, name)):
                if not _holds_no_share(module, value, depth - 1):
                    return False
    return True


def _unpacked(module: Module, dataset: ast.expr) -> Iterator[ast.expr]:
    """What ``train, val = random_split(dataset, ...)`` takes apart."""
    if not isinstance(dataset, ast.Name):
        return
    scope, bindings = module.bindings(dataset)
    if scope is None:
        return
    for binding in module.flow.reaching_bindings(dataset, scope, bindings):
        target = module.parent(binding)
        statement = module.parent(target) if target is not None else None
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(statement, ast.Assign):
            yield statement.value


def shares_data(text: str) -> bool:
    """A question for `Module.text_says`: whether a file shows how data is shared, or ranks that must not share it."""
    return bool(SHARDING.search(text) or MODEL_PARALLEL.search(text))
