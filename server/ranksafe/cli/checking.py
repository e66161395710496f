"""Check many files: unchanged ones from the cache, few in this process, many on all cores."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranksafe.checker.registry import Registry
from ranksafe.cli.cache import (
    ResultCache,
    cache_folder,
    content_hash,
    project_state,
    rules_fingerprint,
)
from ranksafe.cli.checker import Checker, Context, Job, context_of, is_relevant
from ranksafe.cli.options import AnalysisOptions
from ranksafe.cli.progress import Progress
from ranksafe.cli.reading import BINARY, UnreadableSource, read_bytes
from ranksafe.cli.results import FileResult
from ranksafe.localization import Language, Translated
from ranksafe.semantics.project.index import ProjectIndex
from ranksafe.semantics.project.launch_files import command_files
from ranksafe.semantics.project.summary_store import Batch

CACHED_FROM = 8
"""Files to check below which looking whether the project has changed costs more than the cache saves."""

_MANY = 500
"""Files of a project that takes over a second to look ahead in."""
_READING = Translated("reading {count} files", "正在读取 {count} 个文件")
_DONE = Translated("checked {done} of {count} files", "已检查 {done}/{count} 个文件")

PARALLEL_FROM = 20
"""Files to analyse below which starting other processes costs more than it saves."""


def check_files(
    paths: Sequence[Path],
    options: AnalysisOptions,
    registry: Registry,
    *,
    with_edits: bool,
    use_cache: bool,
    language: Language,
) -> list[FileResult]:
    """The results of all files, in their order. Work of over a second shows on a terminal how far it is."""
    store = _Store(registry, with_edits, enabled=use_cache and len(paths) >= CACHED_FROM)
    results: dict[Path, FileResult] = {}
    jobs: list[Job] = []
    for path in paths:
        found = store.find(path, options)
        if isinstance(found, FileResult):
            results[path] = found
        else:
            jobs.append(found)
    checker = Checker(registry, with_edits=with_edits, keeps=use_cache, at_rest=True)
    with Progress() as progress:
        if len(jobs) >= _MANY:
            progress.show(_READING.filled(count=len(jobs)).in_language(language), at_once=True)
        for job, result in zip(jobs, _check_jobs(jobs, checker), strict=True):
            results[job.path] = result
            store.keep(job, result)
            done = len(results) - len(paths) + len(jobs)
            progress.show(_DONE.filled(done=done, count=len(jobs)).in_language(language))
    store.save()
    return [results[path] for path in paths]


class _Store:
    """Caches, one per context, and what was seen of each file before it was read."""

    def __init__(self, registry: Registry, with_edits: bool, *, enabled: bool) -> None:
        self._enabled = enabled
        self._prefix = f"{rules_fingerprint(registry)} {with_edits} " if enabled else ""
        self._folder = cache_folder(os.environ)
        self._caches: dict[str, ResultCache] = {}
        self._states: dict[Path, str] = {}
        self._contexts: dict[Path, tuple[Context, str]] = {}
        self._seen: dict[Path, tuple[os.stat_result, str]] = {}

    def find(self, path: Path, options: AnalysisOptions) -> FileResult | Job:
        """The kept result, a result that needs no analysis, or the work to do."""
        context, key = self._context_of(path, options)
        cache = self._cache(key, context.root)
        absolute = path.absolute()
        try:
            stat = path.stat()
        except OSError:
            stat = None
        if cache is not None and stat is not None:
            kept = cache.result_of(absolute, stat)
            if kept is not None:
                return _under_name(kept, path)
        try:
            data = read_bytes(path)
        except UnreadableSource as error:
            return FileResult(path, problem=error.message)
        if cache is not None and stat is not None:
            hashed = content_hash(data)
            kept = cache.result_of_content(absolute, stat, hashed)
            if kept is not None:
                return _under_name(kept, path)
            self._seen[path] = (stat, hashed)
        job = Job(path, data, context)
        if is_relevant(path, data):
            return job
        result = FileResult(path, problem=BINARY if b"\0" in data else None)
        self.keep(job, result, alone=True)
        return result

    def keep(self, job: Job, result: FileResult, *, alone: bool = False) -> None:
        """Remember a result; ``alone``: no other file of the project had a part in it."""
        context, key = self._contexts[job.path.parent]
        cache = self._cache(key, context.root)
        seen = self._seen.get(job.path)
        if cache is not None and seen is not None and not result.failed_rules:
            cache.keep(_under_name(result, job.path.absolute()), *seen, alone=alone)

    def save(self) -> None:
        """Write what changed."""
        for cache in self._caches.values():
            cache.save()

    def _context_of(self, path: Path, options: AnalysisOptions) -> tuple[Context, str]:
        found = self._contexts.get(path.parent)
        if found is None:
            context = context_of(path, options)
            found = self._contexts[path.parent] = (context, context.key)
        return found

    def _cache(self, key: str, root: Path) -> ResultCache | None:
        if not self._enabled:
            return None
        cache = self._caches.get(key)
        if cache is None:
            state = self._states.get(root)
            if state is None:
                state = self._states[root] = project_state(
                    [*ProjectIndex(root).files(), *command_files(root)]
                )
            cache = ResultCache.open(self._folder, self._prefix + key, state)
            self._caches[key] = cache
        return cache


def _under_name(result: FileResult, path: Path) -> FileResult:
    return replace(result, path=path)


def _check_jobs(jobs: Sequence[Job], checker: Checker) -> Iterator[FileResult]:
    workers = min(os.cpu_count() or 1, len(jobs) // 8 or 1)
    if len(jobs) < PARALLEL_FROM or workers < 2:
        with _without_garbage_collection():
            for job in jobs:
                yield checker.check(job)
                _collect_when_much_is_left()
        checker.keep()
        return
    yield from _check_in_pool(jobs, workers, checker)


def _check_in_pool(jobs: Sequence[Job], workers: int, checker: Checker) -> Iterator[FileResult]:
    import multiprocessing  # here: most calls check few files and can do without
    from concurrent.futures import ProcessPoolExecutor

    global _worker_checker
    # Forked workers have everything imported already; macOS and Windows cannot fork safely.
    processes = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    if sys.platform == "linux":
        checker.look_ahead({job.context.root for job in jobs})
        _worker_checker = checker
    given_up = processes.RawValue("b", False)
    with ProcessPoolExecutor(
        workers,
        mp_context=processes,
        initializer=_start_worker,
        initargs=(checker.with_edits, checker.keeps, given_up),
    ) as pool:
        chunk = max(1, len(jobs) // (workers * 8))
        try:
            for result, batches in pool.map(_check_in_worker, jobs, chunksize=chunk):
                checker.take_over(batches)
                yield result
        except BaseException:
            # Workers that are killed while they are sent files leave the pool waiting for ever (CPython before 3.11.5,
            # python/cpython#94777), so they are told to stop.
            given_up.value = True
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            _worker_checker = None
    checker.keep()


_OBJECTS_LEFT = 1_000_000
"""So many objects, of about 100 bytes, may be left over before they are collected."""
_worker_checker: Checker | None = None
_given_up: Any = None
"""Set in all processes once nobody waits for results any more."""


def _start_worker(with_edits: bool, keeps: bool, given_up: Any) -> None:
    global _worker_checker, _given_up
    # Ctrl+C reaches all processes of the terminal: the first one ends the others and says what is to be said.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _given_up = given_up
    gc.freeze()
    gc.disable()
    if _worker_checker is None:
        _worker_checker = Checker(Registry.load(), with_edits=with_edits, keeps=keeps, at_rest=True)


def _check_in_worker(job: Job) -> tuple[FileResult, dict[Path, Batch]]:
    assert _worker_checker is not None
    if _given_up.value:
        return FileResult(job.path), {}
    result = _worker_checker.check(job)
    _collect_when_much_is_left()
    return result, _worker_checker.found_out() if _worker_checker.keeps else {}


def _collect_when_much_is_left() -> None:
    """Free the trees of checked files: they refer to each other, and to those of the files they import."""
    if gc.get_count()[0] > _OBJECTS_LEFT:
        gc.collect()


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """The analysis makes many objects and few cycles: collecting in between costs more than it frees."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()  # else the first collection now walks over everything that was made
            gc.enable()
