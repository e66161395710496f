"""Simulated GPUs on this machine: the script runs, unmodified, as if N CUDA devices were there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ranksafe.localization import Translated
from ranksafe.rehearsal import several_nodes
from ranksafe.rehearsal.errors import RehearsalNotPossible
from ranksafe.rehearsal.isolation import IsolationPlan, outlook, plan_isolation
from ranksafe.rehearsal.isolation import node as node_program
from ranksafe.rehearsal.settings import DEFAULT_GPUS, Isolation, RehearsalOptions
from ranksafe.runs import agent
from ranksafe.runs.errors import RunCancelled, RunNotPossible
from ranksafe.runs.interpreter import Interpreter
from ranksafe.runs.launch_plan import Node, Plan, free_port, launch_command
from ranksafe.runs.model import RunRequest
from ranksafe.runs.simulated_devices import (
    SimulatedDevices,
    give_devices,
    make_devices,
    settings_for,
)
from ranksafe.runs.targets.protocol import Listener
from ranksafe.runs.targets.supervised import (
    SupervisedProcess,
    described,
    environment_of,
    interpreter_of,
    ride_along,
    start_supervised,
)
from ranksafe.runs.warm import WarmStart

_NODES_FILE = "nodes.json"
MOST_DEVICES = 64
"""Of all nodes together: each is a process of this machine."""


class SimulatedTarget:
    """Runs on simulated devices; ``devices``: per node, None where the request's number counts."""

    def __init__(self, devices: int | None) -> None:
        self._devices = devices
        self._isolation: IsolationPlan | None = None
        self._warm: WarmStart | None = None

    @property
    def name(self) -> str:
        """``simulated:N``, or ``simulated`` where N is the request's."""
        return "simulated" if self._devices is None else f"simulated:{self._devices}"

    def probe(self, request: RunRequest, listener: Listener) -> Sequence[Translated]:
        """The interpreter, its packages, and the devices it would get."""
        interpreter = interpreter_of(request)
        options = request.rehearsal
        per_node, _ = self.counts(request)
        devices = make_devices(
            interpreter.path, environment_of(request), options, listener.say, listener.should_stop
        )
        return [*described(interpreter), _announced(devices, per_node, options), outlook()]

    def prepare(self, request: RunRequest, directory: Path, listener: Listener) -> Plan:
        """Make the devices, which compiles them the first time, and choose the launcher."""
        interpreter = interpreter_of(request)
        environment = environment_of(request)
        options = request.rehearsal
        per_node, ranks = self.counts(request)
        working_directory = request.working_directory or Path.cwd()
        command, expected = self._command(request, interpreter, directory)
        if options.stands_for > 1 and not _LAUNCHERS.intersection(command):
            raise RunNotPossible(_STARTS_ITS_RANKS)
        devices = make_devices(
            interpreter.path, environment, options, listener.say, listener.should_stop
        )
        isolation = self._isolation = _isolation(
            request, directory, working_directory, environment, listener
        )
        settings = settings_for(
            devices,
            options,
            per_node=per_node,
            script=request.script,
            directory=directory,
            offline=isolation.offline,
            reads_network=isolation.reads_network,
        )
        environment = isolation.changed(environment)
        give_devices(environment, settings.write(directory), ranks, request.environment)
        # What looks for silent failures looks at values, of which a forecast has none.
        detectors = "cheap" if options.forecast else "all"
        stops = ride_along(environment, request, directory, detectors=detectors)
        if options.short_epochs:
            environment[agent.STEPS_VARIABLE] = agent.ENOUGH_STEPS
        if isolation.isolated:
            self._warm = WarmStart.of(request, interpreter, settings, environment)
        if self._warm is not None:
            self._warm.offer(directory)
        return Plan(
            command=command,
            environment=environment,
            working_directory=working_directory,
            ranks=expected,
            modified=(
                _announced(devices, per_node, options),
                *_stand_in_for(options),
                *(_OTHER_TEXT.filled(file=Path(path).name) for path, _ in options.texts),
                *stops,
                *isolation.modified,
            ),
            limits=isolation.limits,
            prefix=isolation.prefix,
            in_background=request.in_background,
            keep_detached=request.keep_detached,
            language=request.language,
            terminal=True,
        )

    def start(self, plan: Plan, directory: Path) -> SupervisedProcess:
        """Start the supervisor, which starts the launcher."""
        return start_supervised(plan, directory, self._over)

    def _over(self) -> None:
        self.release()
        if self._warm is not None:
            self._warm.keep_ready()

    def release(self) -> None:
        """Throw away what a run that was killed may have left in its scratch folder."""
        if self._isolation is not None:
            self._isolation.clear()

    def _command(
        self, request: RunRequest, interpreter: Interpreter, directory: Path
    ) -> tuple[tuple[str, ...], int | None]:
        """One launcher, or for several nodes what starts a launcher for each."""
        per_node, ranks = self.counts(request)
        nodes = request.rehearsal.nodes
        if nodes == 1:
            return launch_command(request, interpreter, ranks, directory)
        port = free_port()
        launchers = [
            launch_command(request, interpreter, per_node, directory, Node(index, nodes, port))
            for index in range(nodes)
        ]
        python = str(interpreter.path)
        commands = [
            (python, str(node_program.__file__), str(index), *command)
            for index, (command, _) in enumerate(launchers)
        ]
        file = directory / _NODES_FILE
        file.write_text(several_nodes.settings_as_text(commands), encoding="utf-8")
        return (python, "-u", str(several_nodes.__file__), str(file)), launchers[0][1]

    def counts(self, request: RunRequest) -> tuple[int, int]:
        """Devices per node, and ranks. Raises RunNotPossible for numbers that do not fit."""
        nodes = request.rehearsal.nodes
        per_node = self._devices or request.gpus or DEFAULT_GPUS
        there = per_node * nodes
        ranks = there if self._devices is None else request.gpus or there
        if there > MOST_DEVICES:
            raise RunNotPossible(_TOO_MANY.filled(wanted=there, most=MOST_DEVICES))
        if ranks > there or (nodes > 1 and ranks != there):
            raise RunNotPossible(_NOT_SO_MANY.filled(wanted=ranks, there=there))
        return per_node, ranks


def target_of(name: str) -> SimulatedTarget | None:
    """The target for ``simulated`` or ``simulated:N``; None where the name is neither."""
    kind, colon, number = name.partition(":")
    if kind != "simulated" or (colon and not (number.isdecimal() and int(number) > 0)):
        return None
    return SimulatedTarget(int(number) if colon else None)


def _isolation(
    request: RunRequest,
    directory: Path,
    working_directory: Path,
    environment: Mapping[str, str],
    listener: Listener,
) -> IsolationPlan:
    """How the script is kept apart. Where it cannot be, the user is asked unless that was chosen beforehand.

    Raises RunNotPossible where isolation is required or nobody can be asked, RunCancelled where the answer was no.
    """
    choice = request.rehearsal.isolation
    try:
        plan = plan_isolation(
            choice,
            run_directory=directory,
            working_directory=working_directory,
            environment=environment,
            folders=[request.script.absolute().parent],
            nodes=request.rehearsal.nodes,
            network=request.rehearsal.network,
            host_memory_bytes=request.rehearsal.host_memory_bytes,
            texts=request.rehearsal.texts,
        )
    except RehearsalNotPossible as error:
        raise RunNotPossible(error.message) from error
    if plan.isolated or choice is not Isolation.AUTO:
        return plan
    why = plan.limits[0]
    if listener.agrees is None:
        raise RunNotPossible(_NOBODY_TO_ASK.filled(why=why))
    if not listener.agrees(_QUESTION.filled(why=why)):
        raise RunCancelled
    return plan


def _announced(devices: SimulatedDevices, per_node: int, options: RehearsalOptions) -> Translated:
    text = _DEVICES if options.nodes == 1 else _DEVICES_OF_NODES
    return text.filled(
        number=per_node,
        nodes=options.nodes,
        name=devices.model.name,
        memory=f"{devices.memory_bytes / 2**30:.3g}",
    )


def _stand_in_for(options: RehearsalOptions) -> tuple[Translated, ...]:
    return (_ONE_FOR_ALL.filled(ranks=options.stands_for),) if options.stands_for > 1 else ()


_LAUNCHERS = frozenset({"accelerate.commands.launch", "torch.distributed.run"})
_ONE_FOR_ALL = Translated(
    en="one rank stands for all {ranks}: what the others would send is taken to be its own",
    zh_cn="由一个 rank 代表全部 {ranks} 个：其他 rank 发送的数据按它自己的数据处理",
)
_OTHER_TEXT = Translated(
    en="{file} with another text than it has, which is thrown away",
    zh_cn="{file} 使用另一份内容运行，之后丢弃",
)
_STARTS_ITS_RANKS = Translated(
    en="One rank can stand for all only where accelerate or torchrun starts them: let all of them run (--ranks all).",
    zh_cn="只有由 accelerate 或 torchrun 启动时，一个 rank 才能代表全部：请让所有 rank 运行（--ranks all）。",
)
_DEVICES = Translated(
    en="{number} simulated GPUs ({name}, {memory} GiB each) computed by this machine's processors",
    zh_cn="{number} 个模拟 GPU（{name}，每个 {memory} GiB），由本机 CPU 计算",
)
_DEVICES_OF_NODES = Translated(
    en="{nodes} simulated nodes with {number} GPUs each ({name}, {memory} GiB), computed by this machine's processors",
    zh_cn="{nodes} 个模拟节点，每个有 {number} 个 GPU（{name}，{memory} GiB），由本机 CPU 计算",
)
_NOBODY_TO_ASK = Translated(
    en="The rehearsal would be {why}. Nobody could be asked whether that is wanted: say it beforehand "
    "(--isolation off, or --yes).",
    zh_cn="此次预演将是：{why}。无法询问是否可以这样进行：请事先说明（--isolation off 或 --yes）。",
)
_QUESTION = Translated(en="The rehearsal would be {why}.", zh_cn="此次预演将是：{why}。")
_TOO_MANY = Translated(
    en="{wanted} simulated GPUs are too many for one machine: at most {most}.",
    zh_cn="单机无法模拟 {wanted} 个 GPU：最多 {most} 个。",
)
_NOT_SO_MANY = Translated(
    en="{wanted} ranks do not fit {there} simulated GPUs.",
    zh_cn="{wanted} 个 rank 与 {there} 个模拟 GPU 不相符。",
)
