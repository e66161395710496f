"""What ``torch.cuda`` and what is beside it tell a program in a rehearsal."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ranksafe.rehearsal.inject.ranksafe_rehearsal import visible_devices

pytestmark = pytest.mark.torch

Rehearse = Callable[..., Any]

_HELPERS = '''
import json, os, sys
import torch

def error(function):
    """Type and first line of what a call raises."""
    try:
        function()
    except Exception as problem:
        return [type(problem).__name__, str(problem).splitlines()[0]]
    return None

def tell(**answers):
    print(json.dumps(answers, default=str), flush=True)

'''


def told(rehearse: Rehearse, program: str, **options: Any) -> dict[str, Any]:
    """Run a program that calls ``tell`` once, and return what it told."""
    result = rehearse(_HELPERS + textwrap.dedent(program), **options)
    assert result.returncode == 0, result.stderr[-3000:]
    answers: dict[str, Any] = json.loads(result.lines[-1])
    answers["journal"] = result.journal
    return answers


def test_devices_describe_themselves(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        before = torch.cuda.is_initialized()
        second = torch.cuda.get_device_properties(1)
        tell(
            before=before, after=torch.cuda.is_initialized(), count=torch.cuda.device_count(),
            name=torch.cuda.get_device_name(0), capability=torch.cuda.get_device_capability(0),
            text=repr(second), uuid=str(second.uuid), total=second.total_memory,
            bad=error(lambda: torch.cuda.get_device_properties(2)),
            ordinal=error(lambda: torch.cuda.set_device(2)),
            peer=torch.cuda.can_device_access_peer(0, 1),
            bfloat16=torch.cuda.is_bf16_supported(including_emulation=False),
            version=torch.version.cuda, built=torch.backends.cuda.is_built(),
            cudnn=torch.backends.cudnn.version(), nccl=torch.cuda.nccl.version(),
            architectures="sm_90" in torch.cuda.get_arch_list(), flags=torch.cuda.get_gencode_flags(),
            accelerator=str(torch.accelerator.current_accelerator()),
            module=torch.get_device_module("cuda").__name__,
            temperature=torch.cuda.temperature(), utilization=torch.cuda.utilization(1),
            info=torch.cuda.cudart().cudaMemGetInfo(1)[1],
        )
        """,
    )
    assert [event for event in answers["journal"] if event["event"] == "agent-problem"] == []
    assert (answers["before"], answers["after"], answers["count"]) == (False, True, 2)
    assert answers["name"] == "NVIDIA A100-SXM4-80GB"
    assert answers["capability"] == [8, 0]
    assert answers["uuid"] == str(visible_devices.device_uuid(0, 1))
    assert answers["text"].startswith(
        "_CudaDeviceProperties(name='NVIDIA A100-SXM4-80GB', major=8, minor=0, total_memory=81920MB,"
        " multi_processor_count=108, uuid=" + answers["uuid"]
    )
    assert answers["bad"] == ["AssertionError", "Invalid device id"]
    assert answers["ordinal"] == ["AcceleratorError", "CUDA error: invalid device ordinal"]
    assert answers["peer"]
    assert answers["bfloat16"]
    assert answers["built"]
    assert answers["architectures"]
    assert answers["version"]
    assert answers["cudnn"] > 90000
    assert answers["nccl"][0] == 2
    assert answers["flags"].startswith("-gencode compute=compute_")
    assert answers["accelerator"] == answers["module"].partition(".")[2] == "cuda"
    assert answers["info"] == answers["total"] == 80 * 2**30
    assert answers["utilization"] == 0 < answers["temperature"]


def test_visible_devices_count_from_the_first_question_on(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        os.environ["CUDA_VISIBLE_DEVICES"] = "2,0"
        first = torch.cuda.device_count()
        uuids = [str(torch.cuda.get_device_properties(i).uuid) for i in range(first)]
        os.environ["CUDA_VISIBLE_DEVICES"] = "1"
        tell(first=first, uuids=uuids, then=torch.cuda.device_count(),
             beyond=error(lambda: torch.ones(1, device="cuda:2")))
        """,
        devices=3,
    )
    assert (answers["first"], answers["then"]) == (2, 2)
    assert answers["uuids"] == [str(visible_devices.device_uuid(0, number)) for number in (2, 0)]
    assert answers["beyond"] == ["AcceleratorError", "CUDA error: invalid device ordinal"]


def test_no_visible_device_is_no_device(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        tell(available=torch.cuda.is_available(), count=torch.cuda.device_count(),
             made=error(lambda: torch.ones(1).cuda()))
        """,
        environment={"CUDA_VISIBLE_DEVICES": ""},
    )
    assert (answers["available"], answers["count"]) == (False, 0)
    assert answers["made"] == ["RuntimeError", "No CUDA GPUs are available"]


def test_random_numbers_belong_to_their_device(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        def drawn(device):
            return torch.rand(3, device=device).tolist()
        torch.manual_seed(5)
        first, other, host = drawn("cuda:0"), drawn("cuda:1"), torch.rand(3).tolist()
        state = torch.cuda.get_rng_state(0)
        second = drawn("cuda:0")
        torch.cuda.set_rng_state(state, 0)
        repeated = drawn("cuda:0")
        torch.manual_seed(5)
        undisturbed = torch.rand(3).tolist()
        torch.cuda.manual_seed_all(5)
        own = torch.Generator("cuda:1").manual_seed(5)
        tell(first=first, other=other, again=drawn("cuda:0"), second=second, repeated=repeated,
             host=host, undisturbed=undisturbed, seed=torch.cuda.initial_seed(),
             own=torch.rand(3, device="cuda:1", generator=own).tolist(),
             generators=[str(g.device) for g in torch.cuda.default_generators],
             wrong=error(lambda: torch.rand(3, device="cuda", generator=torch.Generator())))
        """,
    )
    assert answers["first"] == answers["again"] == answers["other"] == answers["own"]
    assert answers["second"] == answers["repeated"] != answers["first"]
    assert answers["host"] == answers["undisturbed"]
    assert answers["seed"] == 5
    assert answers["generators"] == ["cuda:0", "cuda:1"]
    assert answers["wrong"] == [
        "RuntimeError",
        "Expected a 'cuda' device type for generator but found 'cpu'",
    ]


def test_streams_and_events(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        default = torch.cuda.current_stream()
        side, urgent = torch.cuda.Stream(), torch.cuda.Stream(device=1, priority=-1)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(side):
            inside = torch.cuda.current_stream() == side
            start.record()
        with urgent:
            switched = torch.cuda.current_device()
        side.wait_stream(default)
        torch.ones(1, device="cuda").record_stream(side)
        end.record()
        end.synchronize()
        external = torch.cuda.ExternalStream(side.cuda_stream)
        tell(inside=inside, outside=torch.cuda.current_stream() == default, switched=switched,
             back=torch.cuda.current_device(), elapsed=start.elapsed_time(end),
             handles=[default.cuda_stream, side.cuda_stream == external.cuda_stream],
             priority=urgent.priority, kind=isinstance(side, torch.Stream), query=end.query(),
             text=repr(default), distinct=side != torch.cuda.Stream(),
             untimed=error(lambda: torch.cuda.Event().elapsed_time(torch.cuda.Event())),
             unrecorded=error(lambda: start.elapsed_time(torch.cuda.Event(enable_timing=True))),
             other=error(lambda: end.record(urgent)))
        """,
    )
    assert answers["inside"]
    assert answers["outside"]
    assert answers["kind"]
    assert answers["query"]
    assert answers["distinct"]
    assert answers["elapsed"] > 0
    assert (answers["switched"], answers["back"]) == (1, 0)
    assert answers["handles"] == [0, True]
    assert answers["priority"] == -1
    assert answers["text"] == "<torch.cuda.Stream device=cuda:0 cuda_stream=0x0>"
    assert answers["untimed"][1] == (
        "Both events must be created with argument 'enable_timing=True'."
    )
    assert answers["unrecorded"][1] == (
        "Both events must be recorded before calculating elapsed time."
    )
    assert answers["other"][1] == "Event device 0 does not match recording stream's device 1."


def test_memory_is_counted_and_bounded(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        kept = torch.empty(2**18, device="cuda:1")
        freed = torch.empty(2**20, device="cuda:1"); del freed
        held, peak = torch.cuda.memory_allocated(1), torch.cuda.max_memory_allocated(1)
        torch.cuda.reset_peak_memory_stats(1)
        reserved = torch.cuda.memory_reserved(1)
        torch.cuda.empty_cache()
        def fill(size): return lambda: torch.empty(size, dtype=torch.uint8, device="cuda:1")
        full = error(fill(65 * 2**20))
        torch.cuda.set_per_process_memory_fraction(0.25, 1)
        part = error(fill(32 * 2**20))
        torch.cuda.memory._record_memory_history()
        tell(held=held, peak=peak, lower=torch.cuda.max_memory_allocated(1), other=torch.cuda.memory_allocated(0),
             reserved=reserved, less=torch.cuda.memory_reserved(1) < reserved, full=full, part=part,
             refused=torch.cuda.memory_stats(1)["num_ooms"], summary="CUDA OOMs" in torch.cuda.memory_summary(1),
             segments=torch.cuda.memory_snapshot()[0]["device"], total=torch.cuda.mem_get_info(1)[1],
             accelerator=torch.accelerator.memory_allocated(1))
        """,
        memory_bytes=64 * 2**20,
    )
    assert (answers["held"], answers["peak"], answers["lower"]) == (2**20, 5 * 2**20, 2**20)
    assert answers["accelerator"] == answers["held"]
    assert answers["other"] == 0
    assert answers["reserved"] >= answers["peak"]
    assert answers["less"]
    for refused in (answers["full"], answers["part"]):
        assert refused[0] == "OutOfMemoryError"
        assert refused[1].startswith("CUDA out of memory. Tried to allocate ")
    assert answers["refused"] == 2
    assert answers["summary"]
    assert answers["segments"] == 1
    assert answers["total"] == 64 * 2**20
    notes = [event["message"]["en"] for event in answers["journal"] if event["event"] == "modified"]
    assert "The memory history is not recorded on simulated GPUs" in notes


def test_storages_and_files(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        import copy, io
        def loaded(**options):
            file = io.BytesIO()
            torch.save(torch.ones(3, device="cuda:1"), file)
            return torch.load(io.BytesIO(file.getvalue().replace(b"cuda:1", options.pop("name", b"cuda:1"))), **options)
        tensor = torch.arange(8, device="cuda:1")
        storage = tensor.untyped_storage()
        storage.resize_(0)
        empty = storage.nbytes()
        storage.resize_(64)
        tell(devices=[loaded().device, loaded(map_location="cpu").device, loaded(map_location={"cuda:1": "cuda:0"}).device],
             lost=error(lambda: loaded(name=b"cuda:6")), sizes=[empty, storage.nbytes()],
             moved=[tensor.untyped_storage().cpu().device, torch.ones(2).untyped_storage().cuda(1).device],
             made=torch.UntypedStorage(4, device="cuda:1").device, copied=copy.deepcopy(torch.nn.Linear(1, 1).cuda(1)).weight.device,
             old=[torch.cuda.FloatTensor([1, 2]).sum().item(), isinstance(torch.ones(1).cuda(), torch.cuda.FloatTensor),
                  isinstance(torch.ones(1), torch.cuda.FloatTensor), torch.ones(1).cuda().type()],
             pinned=[torch.ones(1).pin_memory().is_pinned(), torch.ones(1).is_pinned()],
             cannot=error(lambda: torch.ones(1).cuda().pin_memory()))
        """,
    )
    assert answers["devices"] == ["cuda:1", "cpu", "cuda:0"]
    assert answers["lost"][1].startswith(
        "Attempting to deserialize object on CUDA device 6 but torch.cuda.device_count() is 2."
    )
    assert answers["sizes"] == [0, 64]
    assert answers["moved"] == ["cpu", "cuda:1"]
    assert (answers["made"], answers["copied"]) == ("cuda:1", "cuda:1")
    assert answers["old"] == [3.0, True, False, "torch.cuda.FloatTensor"]
    assert answers["pinned"] == [True, False]
    assert "only dense CPU tensors can be pinned" in answers["cannot"][1]


def test_communication_speaks_as_torch_does(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        import torch.cuda.comm as comm
        def on(device, *shape): return torch.ones(*shape, device=f"cuda:{device}")
        model = torch.nn.DataParallel(torch.nn.Linear(3, 2).cuda())
        result = model(torch.ones(5, 3))
        result.sum().backward()
        both = [on(0, 2), on(1, 2)]
        torch.cuda.nccl.all_reduce(both)
        tell(chunks=[[str(c.device), len(c)] for c in comm.scatter(torch.ones(5, 1), [0, 1])],
             scalar=error(lambda: comm.scatter(torch.tensor(1.0), [0, 1])),
             sizes=error(lambda: comm.scatter(torch.ones(4), [0, 1], chunk_sizes=[4])),
             shape=error(lambda: comm.gather([on(0, 1, 2), on(1, 1, 3)])),
             host=error(lambda: comm.gather([torch.ones(1), on(1, 1)])),
             first=error(lambda: comm.broadcast_coalesced([on(1, 1)], [0, 1])),
             joined=comm.gather([on(0, 1), on(1, 1)], destination="cpu").tolist(),
             gradient=model.module.weight.grad.tolist(), rows=len(result), reduced=both[1].tolist())
        """,
    )
    assert answers["chunks"] == [["cuda:0", 3], ["cuda:1", 2]]
    assert answers["scalar"][1] == "chunk expects at least a 1-dimensional tensor"
    assert answers["sizes"][1] == (
        "Expected devices and chunk_sizes to be of same length, but got len(devices) = 2 and "
        "len(chunk_sizes) = 1"
    )
    assert answers["shape"][1] == (
        "Input tensor at index 1 has invalid shape [1, 3], but expected [1, 2]"
    )
    assert answers["host"][1] == (
        "Expected all input tensors to be CUDA tensors, but tensor at index 0 has device 'cpu'"
    )
    assert answers["first"][1] == "All tensors must be on devices[0]: 0"
    assert answers["joined"] == [1, 1]
    assert answers["gradient"] == [[5, 5, 5]] * 2
    assert answers["rows"] == 5
    assert answers["reduced"] == [2, 2]


def test_other_processes(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        import subprocess
        import torch.multiprocessing as processes
        from torch.utils.data import DataLoader, Dataset

        class Samples(Dataset):
            def __init__(self, device): self.device = device
            def __len__(self): return 4
            def __getitem__(self, index): return torch.full((2,), float(index), device=self.device)

        def send(queue):
            queue.put(torch.full((2,), 7.0, device="cuda:1"))

        def worker_error():
            try:
                next(iter(DataLoader(Samples("cuda"), num_workers=1)))
            except RuntimeError as problem:
                return str(problem).splitlines()[-1]

        if __name__ == "__main__":
            loader = DataLoader(Samples("cpu"), batch_size=2, num_workers=1, pin_memory=True)
            pinned = [batch.is_pinned() for batch in loader]
            poisoned = worker_error()
            reader, writer = os.pipe()
            if os.fork() == 0:
                os.write(writer, json.dumps(error(lambda: torch.ones(1).cuda())).encode())
                os._exit(0)
            os.wait()
            queue = processes.get_context("spawn").Queue()
            child = processes.get_context("spawn").Process(target=send, args=(queue,))
            child.start()
            received = queue.get(timeout=100)
            child.join()
            program = "import torch; print(torch.cuda.device_count())"
            started = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
            tell(pinned=pinned, poisoned=poisoned, forked=json.loads(os.read(reader, 1000)),
                 received=[str(received.device), received.tolist()], started=started.stdout.strip())
        """,
        timeout=240.0,
    )
    refusal = (
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, "
        "you must use the 'spawn' start method"
    )
    assert answers["pinned"] == [True, True]
    assert answers["poisoned"] == f"RuntimeError: {refusal}"
    assert answers["forked"] == ["RuntimeError", refusal]
    assert answers["received"] == ["cuda:1", [7.0, 7.0]]
    assert answers["started"] == "2"


def test_limits_are_named(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        def capture():
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                torch.ones(1, device="cuda")
        code = "template <typename T> T twice(T x) { return 2 * x; }"
        twice = torch.cuda.jiterator._create_jit_fn(code)
        model = torch.nn.Linear(2, 2).cuda()
        compiled = torch.compile(model)
        row = torch.ones(1, 2, device="cuda")
        kinds = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(activities=kinds) as profile:
            same = torch.equal(compiled(row), model(row))
        with torch.cuda.nvtx.range("step"):
            pass
        tell(graph=error(capture), kernel=error(lambda: twice(row)), same=same,
             names=list(compiled.state_dict()), profiled=len(profile.key_averages()) > 0)
        """,
    )
    assert answers["graph"][0] == answers["kernel"][0] == "SimulationLimit"
    assert answers["graph"][1].startswith("ranksafe simulation limit: CUDA graphs ")
    assert answers["same"]
    assert answers["names"] == ["_orig_mod.weight", "_orig_mod.bias"]
    assert answers["profiled"]
    limits = [event for event in answers["journal"] if event["event"] == "limit"]
    assert [limit["kind"] for limit in limits] == ["cuda-graph", "missing-function"]
    for event in answers["journal"]:
        if "message" in event:
            assert set(event["message"]) == {"en", "zh_cn"}
    kinds = {event.get("kind") for event in answers["journal"] if event["event"] == "modified"}
    assert {"compiler", "profiler"} <= kinds


def test_package_with_kernels_that_fails_to_load_is_a_limit(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    package = tmp_path / "packages" / "flash_attn"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('libcudart.so.12: cannot open')\n")
    program = f"import sys; sys.path.append({str(package.parent)!r})\nimport torch, flash_attn\n"
    result = rehearse(program)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == "ImportError: libcudart.so.12: cannot open"
    limits = [(event["kind"], event["what"]) for event in result.events("limit")]
    assert set(limits) == {("missing-package", "flash_attn")}


def test_absent_package_is_a_limit_only_where_nothing_caught_it(rehearse: Rehearse) -> None:
    caught = rehearse("try:\n    import transformer_engine\nexcept ImportError:\n    pass\n")
    assert caught.returncode == 0
    assert not caught.events("limit")
    uncaught = rehearse("import transformer_engine\n")
    assert uncaught.returncode == 1
    assert [event["what"] for event in uncaught.events("limit")] == ["transformer_engine"]


def test_a_node_has_a_name_and_devices_of_its_own(rehearse: Rehearse) -> None:
    answers = told(
        rehearse,
        """
        import platform, socket
        tell(names=[socket.gethostname(), platform.node()], name=torch.cuda.get_device_name(),
             uuid=str(torch.cuda.get_device_properties(0).uuid),
             supported=[torch.cuda.is_bf16_supported(including_emulation=False), torch.cuda.is_tf32_supported()])
        """,
        nodes=2,
        environment={"RANKSAFE_REHEARSAL_NODE": "1"},
        device_name="Tesla T4",
        capability=(7, 5),
    )
    assert answers["names"] == ["node-1", "node-1"]
    assert answers["uuid"] == str(visible_devices.device_uuid(1, 0))
    assert answers["name"] == "Tesla T4"
    assert answers["supported"] == [False, False]


@pytest.mark.long
def test_activation_is_cheap(rehearse: Rehearse) -> None:
    program = """
        import resource
        def used():
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return usage.ru_utime + usage.ru_stime
        import subprocess
        def cost(environment):
            best = 1e9
            for _ in range(4):
                before = used()
                subprocess.run([sys.executable, "-c", "import torch"], env=environment, check=True)
                best = min(best, used() - before)
            return best
        plain = {name: text for name, text in os.environ.items() if name not in ("RANKSAFE_REHEARSAL", "PYTHONPATH")}
        tell(simulated=cost(dict(os.environ)), plain=cost(plain))
        """
    answers = told(rehearse, program)
    assert answers["simulated"] < 2 * answers["plain"]
