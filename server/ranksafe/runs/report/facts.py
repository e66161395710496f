"""What a run ran on, how to repeat it, what was changed against a plain launch."""

from __future__ import annotations

import shlex
from typing import Any

from ranksafe.localization import Translated
from ranksafe.runs.plain_files import finite
from ranksafe.runs.records.kept_runs import KeptRun
from ranksafe.runs.report.elements import Content, Element, element

_SHOWN_PACKAGES = (
    "torch",
    "transformers",
    "accelerate",
    "trl",
    "peft",
    "datasets",
    "deepspeed",
    "lightning",
    "bitsandbytes",
    "triton",
    "numpy",
)
_NCCL = "nvidia-nccl-"


def notes_section(run: KeptRun) -> list[Element]:
    """What differed from a plain launch, and what the run could not show."""
    found = []
    for title, sentences in (
        (_MODIFIED, run.sentences("modified")),
        (_LIMITS, run.sentences("limits")),
    ):
        if sentences:
            items = [element("li", sentence) for sentence in sentences]
            found += [element("h3", title), element("ul", *items, class_="notes")]
    return [element("h2", _NOTES), *found] if found else []


def command_section(run: KeptRun) -> list[Element]:
    """ranksafe's command line, and the one it started."""
    repeat = repeat_command(run)
    found = [element("h2", _COMMAND)]
    if repeat:
        found.append(element("pre", repeat))
    if run.command:
        found += [
            element("p", _STARTED_BY, class_="quiet"),
            element("pre", shlex.join(run.command)),
        ]
    names = run.environment.get("environment_names")
    if isinstance(names, list) and names:
        found.append(element("p", _VARIABLES.filled(names=", ".join(map(str, names)))))
    return found


def repeat_command(run: KeptRun) -> str:
    """The shell lines that start the same run again; empty where the request is not known."""
    request = run.request
    if not request.get("script"):
        return ""
    rehearsal = request.get("rehearsal")
    rehearsal = rehearsal if isinstance(rehearsal, dict) else {}
    is_simulated = run.target.startswith("simulated:")
    is_forecast = bool(rehearsal.get("forecast"))
    words = ["ranksafe", "fit" if is_forecast else "run", str(request["script"])]
    steps = request.get("steps")
    devices: tuple[tuple[str, Any], ...] = (
        ("--target", None if request.get("target") == "local" else request.get("target")),
        ("--gpus", None if is_simulated else request.get("gpus")),
    )
    if is_forecast:
        stands_for = finite(rehearsal.get("stands_for")) or 1
        alone = stands_for > 1
        gpus = int(stands_for) if alone else run.target.partition(":")[2]
        devices = (("--gpus", gpus), ("--ranks", "one" if alone else None))
        steps = 0 if steps is None else steps
    options = (
        *devices,
        ("--steps", steps),
        ("--config-file", request.get("config_file")),
        ("--launcher", request.get("launcher")),
        ("--python", request.get("interpreter")),
        ("--timeout", request.get("timeout_seconds")),
    )
    for name, value in options:
        if value is not None:
            words += [name, f"{value:g}" if isinstance(value, float) else str(value)]
    if request.get("cpu_ranks"):
        words.append("--cpu-ranks")
    words += _rehearsal_words(rehearsal, is_forecast=is_forecast)
    arguments = request.get("arguments")
    if isinstance(arguments, list) and arguments:
        words += ["--", *map(str, arguments)]
    folder = str(request.get("working_directory") or ".")
    return f"cd {shlex.quote(folder)}\n{shlex.join(words)}"


def _rehearsal_words(rehearsal: dict[str, Any], *, is_forecast: bool) -> list[str]:
    words = []
    of_values = (("--shrink", "shrink"), ("--confirm", "confirm"))
    for option, key in (
        ("--nodes", "nodes"),
        ("--device-model", "device_model"),
        ("--isolation", "isolation"),
        *(() if is_forecast else of_values),
    ):
        if rehearsal.get(key) is not None:
            words += [option, str(rehearsal[key])]
    memory = rehearsal.get("memory_bytes")
    return [*words, "--gpu-memory", str(memory)] if memory is not None else words


def environment_section(run: KeptRun) -> list[Element]:
    """Versions, hosts, devices, commit."""
    facts = run.environment
    packages = facts.get("packages")
    packages = packages if isinstance(packages, dict) else {}
    hosts = facts.get("hosts")
    hosts = hosts if isinstance(hosts, list) else []
    rows: list[tuple[Content, Content]] = [
        (_HOSTS, ", ".join(map(str, hosts))),
        ("Python", _joined(facts.get("python"), facts.get("interpreter"))),
        (_PLATFORM, _joined(facts.get("platform"), _processors(facts.get("processors")))),
        (_GPUS, _gpus(facts.get("gpus"))),
        (_COMMIT, _commit(facts.get("git"))),
    ]
    shown = [name for name in _SHOWN_PACKAGES if name in packages]
    shown += [name for name in packages if name.startswith(_NCCL)]
    rows += [(name, str(packages[name])) for name in shown]
    rows.append(("ranksafe", str(facts.get("ranksafe") or "")))
    found = [element("h2", _ENVIRONMENT), _table([row for row in rows if row[1]])]
    if len(packages) > len(shown):
        everything = _table([(name, str(version)) for name, version in packages.items()])
        summary = element("summary", _ALL.filled(count=len(packages)))
        found.append(element("details", summary, everything))
    return found


def _table(rows: list[tuple[Content, Content]]) -> Element:
    lines = [element("tr", element("th", name), element("td", value)) for name, value in rows]
    return element("table", element("tbody", *lines), class_="facts")


def _joined(*parts: Any) -> str:
    return " · ".join(str(part) for part in parts if part)


def _processors(count: Any) -> str:
    return f"{count} CPUs" if isinstance(count, int) else ""


def _gpus(devices: Any) -> str:
    if not isinstance(devices, list):
        return ""
    return ", ".join(
        f"{device.get('index')}: {device.get('name')}"
        for device in devices
        if isinstance(device, dict)
    )


def _commit(git: Any) -> str:
    if not isinstance(git, dict):
        return ""
    return _joined(str(git.get("commit", ""))[:12], git.get("branch"))


_NOTES = Translated("About this run", "关于此次运行")
_MODIFIED = Translated("Changed against a plain launch", "与普通启动的不同之处")
_LIMITS = Translated("What this run does not show", "此次运行未能体现的内容")
_COMMAND = Translated("Run it again", "再次运行")
_STARTED_BY = Translated("What was started:", "实际启动的命令：")
_VARIABLES = Translated(
    "Environment variables set for the run (values are not recorded): {names}",
    "为此次运行设置的环境变量（不记录其值）：{names}",
)
_ENVIRONMENT = Translated("Environment", "环境")
_HOSTS = Translated("Hosts", "主机")
_PLATFORM = Translated("Platform", "平台")
_GPUS = Translated("GPUs", "GPU")
_COMMIT = Translated("Commit", "提交")
_ALL = Translated("All {count} installed packages", "全部 {count} 个已安装的包")
