"""Arguments that several commands share: which rules, which configuration, what is said of the launch."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

from ranksafe.checker.configuration import (
    AnalysisKeys,
    Configuration,
    ConfigurationProblem,
    LoadedConfiguration,
    load_configuration,
    parse_assumption,
    read_configuration_file,
)
from ranksafe.checker.registry import Registry
from ranksafe.cli.argument_types import positive
from ranksafe.cli.files import Configurations
from ranksafe.cli.gitignore import is_repository
from ranksafe.cli.output_options import add_color_argument
from ranksafe.cli.terminal import note
from ranksafe.launch.context import LaunchContext, Launcher
from ranksafe.launch.detect import build_launch_context
from ranksafe.launch.interpreter import find_interpreter
from ranksafe.launch.pins import pinned_versions
from ranksafe.launch.versions import installed_versions
from ranksafe.localization import Language, Translated

_LAUNCHERS = [launcher.value for launcher in Launcher if launcher is not Launcher.UNKNOWN]

_HELP = {
    "paths": Translated("files and folders; - for standard input", "文件和文件夹；- 表示标准输入"),
    "select": Translated(
        "rules to run: codes, prefixes or names, comma-separated, or ALL",
        "要运行的规则：编号、前缀或名称，以逗号分隔，或 ALL",
    ),
    "ignore": Translated("rules not to run", "不运行的规则"),
    "config": Translated("configuration file to use", "使用的配置文件"),
    "preview": Translated("run preview rules too", "同时运行预览规则"),
    "gpus": Translated("number of GPUs the scripts will see", "脚本可见的 GPU 数量"),
    "launcher": Translated("how the scripts are started", "脚本的启动方式"),
    "assume": Translated("version the scripts will meet; repeatable", "脚本运行时的库版本；可重复"),
    "python": Translated(
        "the project's Python, whose installed versions are read (default: the active or .venv one)",
        "项目的 Python，读取其中已安装的版本（默认：当前激活的环境或 .venv）",
    ),
    "gitignore": Translated(
        "check what .gitignore leaves out too", "同时检查 .gitignore 排除的文件"
    ),
    "force-exclude": Translated(
        "leave out files that the configuration excludes, even if they are named",
        "即使指明了路径，也跳过配置排除的文件",
    ),
    "filename": Translated(
        "the name standard input is checked under", "检查标准输入时使用的文件名"
    ),
}
_WRONG_ASSUMPTION = Translated(
    "--assume takes NAME==VERSION, not `{text}`", "--assume 的格式为 NAME==VERSION，而不是 `{text}`"
)
_UNKNOWN_RULE = Translated("no rule fits `{selector}`", "没有与 `{selector}` 相符的规则")
_UNKNOWN_RULE_IN = Translated(
    "{path}: no rule fits `{selector}`", "{path}：没有与 `{selector}` 相符的规则"
)
_NO_CONFIG = Translated("{path}: no such configuration file", "{path}：配置文件不存在")
_NO_TABLE = Translated("{path}: has no [tool.ranksafe] table", "{path}：没有 [tool.ranksafe] 表")
_EMPTY_PATH = Translated("an empty word is no path", "空字符串不是路径")
_NO_PYTHON = Translated("{path}: no such interpreter", "{path}：解释器不存在")
BROKEN_CONFIGURATION = Translated("the configuration cannot be used", "配置文件不可用")
_COMMAND_LINE = "command line"
_PROJECT_MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg")


class UsedWrongly(Exception):
    """The command line or a configuration file cannot be used; the message says why."""

    def __init__(self, message: Translated) -> None:
        super().__init__(message.en)
        self.message = message


def add_analysis_arguments(parser: argparse.ArgumentParser, language: Language) -> None:
    """What `check` and `fix` have in common."""

    def text(key: str) -> str:
        return _HELP[key].in_language(language)

    parser.add_argument("paths", nargs="*", metavar="PATH", help=text("paths"))
    parser.add_argument("--select", action="append", metavar="RULES", help=text("select"))
    parser.add_argument("--ignore", action="append", metavar="RULES", help=text("ignore"))
    parser.add_argument("--config", type=Path, metavar="FILE", help=text("config"))
    parser.add_argument("--preview", action="store_true", default=None, help=text("preview"))
    parser.add_argument("--gpus", type=positive, metavar="N", help=text("gpus"))
    parser.add_argument("--launcher", choices=_LAUNCHERS, help=text("launcher"))
    parser.add_argument("--assume", action="append", metavar="NAME==VERSION", help=text("assume"))
    parser.add_argument("--python", type=Path, metavar="PATH", help=text("python"))
    parser.add_argument(
        "--no-respect-gitignore",
        dest="respect_gitignore",
        action="store_false",
        help=text("gitignore"),
    )
    parser.add_argument("--force-exclude", action="store_true", help=text("force-exclude"))
    parser.add_argument("--stdin-filename", type=Path, metavar="FILE", help=text("filename"))
    add_color_argument(parser, language)


@dataclass(slots=True)
class AnalysisOptions:
    """The arguments of `add_analysis_arguments`, understood."""

    command_line: AnalysisKeys
    python: Path | None
    configurations: Configurations
    folders: tuple[Path, ...] = ()
    """Folders that were named to be checked."""

    def root_of(self, path: Path) -> Path:
        """The folder of a file's project: that of its configuration, else the nearest that looks like a project's,
        else the one that was named, else the file's own."""
        source = self.configurations.of_file(path).source
        if source is not None:
            return source.parent
        folder = path.absolute().parent
        marked = _marked_folder(folder)
        if marked is not None:
            return marked
        named = [item for item in self.folders if folder.is_relative_to(item)]
        return named[0] if named else folder

    def _all_around(self, path: Path) -> Path:
        """The outermost folder that may say what a file needs: its repository, or the folder that was named, where its
        project is a part of them."""
        root = self.root_of(path)
        around = (*self.folders, _repository_of(root))
        return min(filter(root.is_relative_to, around), key=lambda item: len(item.parts))

    def configuration_of(self, path: Path) -> Configuration:
        """What to check in a file, the command line included."""
        return self.configurations.of_file(path).configuration.with_settings(self.command_line)

    def launch_of(self, path: Path) -> LaunchContext:
        """What is known of a file's launch."""
        loaded = self.configurations.of_file(path)
        source = loaded.source.name if loaded.source is not None else "default"
        python = self.python or _interpreter_of(path.parent)
        return build_launch_context(
            self.command_line.statement(_COMMAND_LINE),
            loaded.configuration.statement(source),
            installed=_versions_of(python) if python is not None else None,
            pinned=_pins_of(path.absolute().parent, self._all_around(path)),
        )

    def check_selectors(self, registry: Registry) -> None:
        """Raise UsedWrongly for a selector that fits no rule: what was to be checked is not known."""
        for selector in self.command_line.selectors():
            if registry.names_nothing(selector):
                raise UsedWrongly(_UNKNOWN_RULE.filled(selector=selector))
        for loaded in self.configurations.loaded():
            for selector in loaded.configuration.selectors():
                if registry.names_nothing(selector):
                    message = _UNKNOWN_RULE_IN.filled(selector=selector, path=loaded.source)
                    raise UsedWrongly(message)

    def report_problems(self, language: Language) -> bool:
        """Note what in the configuration files could not be used; whether a file was broken altogether."""
        broken = False
        for loaded in self.configurations.loaded():
            for problem in loaded.problems:
                note(_problem_text(problem, language))
            broken = broken or (
                bool(loaded.problems)
                and loaded.configuration == Configuration(root=loaded.configuration.root)
            )
        return broken


def read_analysis_options(arguments: argparse.Namespace) -> AnalysisOptions:
    """The shared arguments. Raises UsedWrongly."""
    if "" in arguments.paths:
        # As from a shell variable that is not set; `Path("")` would be the whole working directory.
        raise UsedWrongly(_EMPTY_PATH)
    if arguments.python is not None and not arguments.python.exists():
        raise UsedWrongly(_NO_PYTHON.filled(path=arguments.python))
    versions = []
    for text in arguments.assume or ():
        parsed = parse_assumption(text)
        if parsed is None:
            raise UsedWrongly(_WRONG_ASSUMPTION.filled(text=text))
        versions.append(parsed)
    return AnalysisOptions(
        command_line=AnalysisKeys(
            select=_listed(arguments.select),
            ignore=_listed(arguments.ignore),
            preview=arguments.preview,
            gpus=arguments.gpus,
            launcher=Launcher(arguments.launcher) if arguments.launcher else None,
            assume=tuple(versions),
        ),
        python=arguments.python,
        configurations=Configurations(_chosen(arguments.config)),
        folders=tuple(
            Path(path).absolute() for path in arguments.paths or ["."] if Path(path).is_dir()
        ),
    )


@lru_cache(maxsize=1024)
def _marked_folder(folder: Path) -> Path | None:
    for candidate in (folder, *folder.parents):
        if any((candidate / name).exists() for name in _PROJECT_MARKERS):
            return candidate
    return None


@lru_cache(maxsize=1024)
def _repository_of(folder: Path) -> Path:
    """The root of the repository around a folder; the folder itself where there is none."""
    return next(filter(is_repository, (folder, *folder.parents)), folder)


def _chosen(path: Path | None) -> LoadedConfiguration | None:
    if path is None:
        return None
    if path.is_dir():
        return load_configuration(path)
    if not path.is_file():
        raise UsedWrongly(_NO_CONFIG.filled(path=path))
    loaded = read_configuration_file(path)
    if loaded is None:
        raise UsedWrongly(_NO_TABLE.filled(path=path))
    return loaded


def _listed(values: list[str] | None) -> tuple[str, ...] | None:
    if values is None:
        return None
    return tuple(item.strip() for value in values for item in value.split(",") if item.strip())


def _problem_text(problem: ConfigurationProblem, language: Language) -> str:
    line = "" if problem.line is None else f":{problem.line}"
    return f"{problem.path}{line}: {problem.message.in_language(language)}"


@lru_cache(maxsize=256)
def _interpreter_of(folder: Path) -> Path | None:
    environment = dict(os.environ)
    active = environment.get("VIRTUAL_ENV")
    is_own = active is not None and Path(active).resolve() == Path(sys.prefix).resolve()
    if is_own and "torch" not in _versions_of(Path(sys.executable)):
        # Made for ranksafe alone, as pre-commit does: the project's is another.
        del environment["VIRTUAL_ENV"]
    found = find_interpreter(folder, environment)
    if found is None and sys.prefix != sys.base_prefix:
        # Installed into the project's own environment and started from there without activating it.
        return Path(sys.executable)
    return found


_versions_of = lru_cache(maxsize=16)(installed_versions)
_pins_of = lru_cache(maxsize=4096)(partial(pinned_versions, known={}))
