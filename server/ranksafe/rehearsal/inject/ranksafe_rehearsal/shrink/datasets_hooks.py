"""Keeps ``datasets.load_dataset`` to the first rows, and stands in for well-known datasets that are not on disk."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Set
from typing import Any, Callable, NoReturn

from .. import importing, journal, limits, lookups, provenance
from ..settings import Settings
from . import splits, text
from .known_datasets import KnownDataset, is_whole, known

ROWS = 512
"""Of each split: enough for a few steps of several ranks with accumulation, and mapped in a second."""
_MARK = "[ranksafe rehearsal: first rows only]"
"""In a dataset's description, which every transformation hands on."""
_READERS = (
    "csv",
    "json",
    "text",
    "parquet",
    "arrow",
    "pandas",
    "imagefolder",
    "audiofolder",
    "webdataset",
    "xml",
)


def install(settings: Settings) -> None:
    """Hook ``datasets`` when the script imports it."""
    importing.after_import("datasets.load", functools.partial(_hook_load, settings))
    importing.after_import("datasets", _hook_names)
    provenance.recognise("dataset", _is_marked)
    lookups.recognise(_lacks)
    importing.after_import("datasets.arrow_dataset", _hook_select)


def _hook_load(settings: Settings, module: Any) -> None:
    original = module.load_dataset

    @functools.wraps(original)
    def load_dataset(path: Any, *arguments: Any, **keywords: Any) -> Any:
        name = os.fspath(path) if isinstance(path, os.PathLike) else str(path)
        if not _is_on_the_hub(name):
            return _first_rows(original(path, *arguments, **keywords), name)
        try:
            return _first_rows(original(path, *arguments, **keywords), name)
        except Exception as problem:
            return _stand_in(settings, name, arguments, keywords, problem)

    module.load_dataset = load_dataset


def _is_marked(thing: Any) -> bool:
    """Whether it is a dataset that a stand-in became, without asking objects of other libraries anything."""
    info = getattr(thing, "info", None) if type(thing).__module__.startswith("datasets.") else None
    return _MARK in str(getattr(info, "description", ""))


_wholes: list[Set[str]] = []
"""Columns, or splits, of stand-ins that have all of the real one's."""


def _lacks(thing: Any, key: str) -> bool:
    """Whether it is a row, a batch or the splits of a stand-in whose original has no such key, either."""
    if type(thing) is dict or type(thing).__module__.startswith("datasets."):
        columns = None if isinstance(thing, dict) else getattr(thing, "column_names", None)
        names = set(columns or thing)
        return bool(names) and any(names <= whole and key not in whole for whole in _wholes)
    return False


def _hook_names(module: Any) -> None:
    """The package's copies, and the names of splits and configurations, which scripts ask for before they load."""
    module.load_dataset = importlib.import_module("datasets.load").load_dataset
    inspect_module = importlib.import_module("datasets.inspect")
    for attribute in ("get_dataset_split_names", "get_dataset_config_names"):
        original = getattr(inspect_module, attribute, None)
        if original is not None:
            names = _names(original, "split" in attribute)
            setattr(inspect_module, attribute, names)
            setattr(module, attribute, names)


def _names(original: Callable[..., Any], of_splits: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def names(path: Any, *arguments: Any, **keywords: Any) -> Any:
        try:
            return original(path, *arguments, **keywords)
        except Exception:
            found = known(str(path), arguments[0] if arguments else keywords.get("config_name"))
            if found is None:
                raise
            return list(found.splits) if of_splits else ["default"]

    return names


def _is_on_the_hub(name: str) -> bool:
    return not (os.path.exists(name) or name in _READERS or name.startswith((".", "/", "~")))


def _stand_in(
    settings: Settings,
    name: str,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
    problem: Exception,
) -> Any:
    """The synthetic dataset, or the user's own error, or a limit that says what was not found."""
    configuration = arguments[0] if arguments else keywords.get("name")
    found = known(name, configuration)
    if found is None and not _is_missing(problem):
        raise problem
    if found is None:
        _refuse_unknown(name)
    if is_whole(name):
        _wholes.extend([found.columns.keys(), set(found.splits)])
    streaming = bool(keywords.get("streaming"))
    split = keywords.get("split")
    if isinstance(split, (list, tuple)):
        result: Any = [_one(name, found, str(part), streaming) for part in split]
    elif isinstance(split, dict):
        result = {key: _one(name, found, str(part), streaming) for key, part in split.items()}
    else:
        result = _one(name, found, None if split is None else str(split), streaming)
    shown = name if configuration is None else f"{name} ({configuration})"
    journal.modified(
        f"dataset {shown} → {ROWS} synthetic rows per split with the same columns",
        f"数据集 {shown} → 每个划分 {ROWS} 行列名相同的合成数据",
        object="dataset",
        name=name,
    )
    return result


def _one(name: str, found: KnownDataset, split: str | None, streaming: bool) -> Any:
    if split is not None:
        _check_splits(split, found)
    return _synthetic(name, found, split, streaming)


def _is_missing(problem: Exception) -> bool:
    """Whether a dataset could not be reached, as opposed to an argument that is wrong."""
    kinds = {kind.__name__ for kind in type(problem).__mro__}
    return bool(
        kinds
        & {
            "ConnectionError",
            "FileNotFoundError",
            "OfflineModeIsEnabled",
            "DatasetNotFoundError",
            "HTTPError",
        }
        or "SimulationLimit" in kinds
        or "offline" in str(problem).lower()
        or "couldn't" in str(problem).lower()
    )


def _refuse_unknown(name: str) -> NoReturn:
    english = (
        f"the dataset {name} is neither on disk nor one of the known ones: download it once, or let the script "
        f"read a local file"
    )
    chinese = (
        f"数据集 {name} 既不在磁盘上，也不在已知数据集之列：请先下载一次，或让脚本读取本地文件"
    )
    journal.write("unavailable", what=name, message={"en": english, "zh_cn": chinese})
    limits.refuse("unavailable", name, english, chinese)


def _check_splits(split: str, found: KnownDataset) -> None:
    for part in splits.parsed(split):
        if part.name not in found.splits and part.name != "all":
            # datasets' own words, because a wrong split is the user's error.
            raise ValueError(f'Unknown split "{part.name}". Should be one of {list(found.splits)}.')


def _synthetic(name: str, found: KnownDataset, split: str | None, streaming: bool) -> Any:
    import datasets

    def rows_of(wanted: str) -> Any:
        parts = [
            _rows(datasets, name, found, part_name, count)
            for part in splits.parsed(wanted)
            for part_name in (found.splits if part.name == "all" else (part.name,))
            for count in (part.rows(ROWS),)
        ]
        return parts[0] if len(parts) == 1 else datasets.concatenate_datasets(parts)

    def finished(dataset: Any) -> Any:
        return dataset.to_iterable_dataset() if streaming else dataset

    if split is not None:
        return finished(rows_of(split))
    parts = {part: finished(rows_of(part)) for part in found.splits}
    return (datasets.IterableDatasetDict if streaming else datasets.DatasetDict)(parts)


def _rows(datasets: Any, name: str, found: KnownDataset, split: str, count: int) -> Any:
    source = text.generator(name, split)
    values: dict[str, list[Any]] = {column: [] for column in found.columns}
    for row in range(count):
        for column, how in found.columns.items():
            values[column].append(how.value(source, row))
    features = _inferred(datasets, found, values)
    info = datasets.DatasetInfo(description=_MARK, features=features)
    return datasets.Dataset.from_dict(
        values, features=features, info=info, split=datasets.NamedSplit(split)
    )


def _inferred(datasets: Any, found: KnownDataset, values: dict[str, list[Any]]) -> Any:
    """The types of the columns, in their order."""
    return datasets.Features(
        {
            column: how.feature(datasets)
            if how.feature is not None
            else datasets.Dataset.from_dict({column: values[column][:1]}).features[column]
            for column, how in found.columns.items()
        }
    )


def _first_rows(dataset: Any, name: str) -> Any:
    """The same object with at most `ROWS` rows in each split."""
    if isinstance(dataset, list):
        return [_first_rows(part, name) for part in dataset]
    if isinstance(dataset, dict):
        for split, part in list(dataset.items()):
            dataset[split] = _first_rows(part, name)
        return dataset
    if not hasattr(dataset, "__len__"):
        return dataset.take(ROWS) if hasattr(dataset, "take") else dataset
    if len(dataset) <= ROWS:
        return dataset
    journal.modified(
        f"dataset {name} → its first {ROWS} of {len(dataset)} rows",
        f"数据集 {name} → 仅取 {len(dataset)} 行中的前 {ROWS} 行",
        object="dataset",
        name=name,
    )
    dataset = dataset.select(range(ROWS))
    dataset.info.description = f"{dataset.info.description or ''} {_MARK}"
    return dataset


def _hook_select(module: Any) -> None:
    """A script that picks its first thousand rows, or holds some out, means a dataset that has them."""
    dataset_class = module.Dataset
    select, split = dataset_class.select, dataset_class.train_test_split

    @functools.wraps(select)
    def select_around(self: Any, indices: Any, *arguments: Any, **keywords: Any) -> Any:
        if _MARK in (self.info.description or "") and len(self):
            wanted = list(indices)
            if any(index >= len(self) for index in wanted):
                indices = [index % len(self) for index in wanted[: max(ROWS, len(self))]]
        return select(self, indices, *arguments, **keywords)

    @functools.wraps(split)
    def split_within(
        self: Any, test_size: Any = None, train_size: Any = None, *arguments: Any, **keywords: Any
    ) -> Any:
        if _MARK in (self.info.description or ""):
            if isinstance(test_size, int) and test_size >= len(self):
                test_size = 0.2
            if isinstance(train_size, int) and train_size >= len(self):
                train_size = None if test_size is not None else 0.8
        return split(self, test_size, train_size, *arguments, **keywords)

    dataset_class.select, dataset_class.train_test_split = select_around, split_within
