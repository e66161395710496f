"""Each collective of torch.distributed under nccl, its result compared with what every rank can compute for itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

CHECKS: list[Callable[[int, int], None]] = []


def check(function: Callable[[int, int], None]) -> Callable[[int, int], None]:
    CHECKS.append(function)
    return function


def on_device(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values, device="cuda", dtype=dtype)


def raised(action: Callable[[], object], kind: type[BaseException], text: str) -> None:
    message = None
    try:
        action()
    except kind as error:
        message = str(error)
    assert message is not None, f"{text!r} was not raised"
    assert text in message, f"{text!r} is not in {message}"


@check
def all_reduce_operators(rank: int, ranks: int) -> None:
    expected = {
        dist.ReduceOp.SUM: sum(range(1, ranks + 1)),
        dist.ReduceOp.AVG: (ranks + 1) / 2,
        dist.ReduceOp.MAX: ranks,
        dist.ReduceOp.MIN: 1,
    }
    for operation, value in expected.items():
        for length in (1, 7, 100_003):
            tensor = torch.full((length,), float(rank + 1), device="cuda")
            dist.all_reduce(tensor, op=operation)
            assert (tensor == value).all(), (operation, length, tensor[0])
    tensor = on_device(2.0)
    dist.all_reduce(tensor, op=dist.ReduceOp.PRODUCT)
    assert tensor.item() == 2.0**ranks
    tensor = on_device(2.0)
    dist.all_reduce(tensor, op=dist._make_nccl_premul_sum(0.5))
    assert tensor.item() == ranks


@check
def all_reduce_types(rank: int, ranks: int) -> None:
    types = (
        torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.int32, torch.int64,
        torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2,
    )  # fmt: skip
    for dtype in types:
        tensor = torch.ones(5, device="cuda").to(dtype)
        dist.all_reduce(tensor)
        assert (tensor.to(torch.complex64).real == ranks).all(), (dtype, tensor)
    flags = torch.tensor([rank == 0, False, True], device="cuda")
    dist.all_reduce(flags)
    assert flags.tolist() == [True, False, True]
    whole = on_device(float(rank), dtype=torch.int64)
    dist.all_reduce(whole, op=dist.ReduceOp.AVG)
    assert whole.item() == sum(range(ranks)) // ranks


@check
def channels_last_is_reduced_as_it_lies(rank: int, ranks: int) -> None:
    image = (
        torch.arange(24.0, device="cuda").reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)
    )
    expected = image * ranks
    dist.all_reduce(image)
    assert torch.equal(image, expected)


@check
def broadcast_and_reduce(rank: int, ranks: int) -> None:
    tensor = on_device(float(rank), 7.0)
    dist.broadcast(tensor, src=1)
    assert tensor.tolist() == [1.0, 7.0]
    tensor = on_device(float(rank))
    dist.reduce(tensor, dst=1)
    assert tensor.item() == (sum(range(ranks)) if rank == 1 else rank)


@check
def all_gather_forms(rank: int, ranks: int) -> None:
    parts = [torch.empty(2, device="cuda") for _ in range(ranks)]
    dist.all_gather(parts, on_device(float(rank), -1.0))
    assert [part[0].item() for part in parts] == list(range(ranks))
    uneven = [torch.empty(peer + 1, device="cuda") for peer in range(ranks)]
    dist.all_gather(uneven, torch.full((rank + 1,), float(rank), device="cuda"))
    assert [part.tolist() for part in uneven] == [
        [float(peer)] * (peer + 1) for peer in range(ranks)
    ]
    whole = torch.empty(2 * ranks, device="cuda")
    dist.all_gather_into_tensor(whole, on_device(float(rank), float(rank)))
    assert whole[::2].tolist() == list(range(ranks))
    objects: list[object] = [None] * ranks
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * (10 * rank)})
    assert [one["rank"] for one in objects] == list(range(ranks))  # type: ignore[index]


@check
def scatter_and_gather(rank: int, ranks: int) -> None:
    output = torch.empty(2, device="cuda")
    parts = [torch.full((2,), float(peer), device="cuda") for peer in range(ranks)]
    dist.scatter(output, parts if rank == 0 else None, src=0)
    assert output.tolist() == [float(rank)] * 2
    gathered = [torch.empty(2, device="cuda") for _ in range(ranks)] if rank == ranks - 1 else None
    dist.gather(output, gathered, dst=ranks - 1)
    if gathered is not None:
        assert [part[0].item() for part in gathered] == list(range(ranks))
    received: list[object] = [None]
    dist.scatter_object_list(
        received, [{"for": peer} for peer in range(ranks)] if rank == 0 else None, src=0
    )
    assert received == [{"for": rank}]
    told: list[object] = ["word", 3] if rank == 0 else [None, None]
    dist.broadcast_object_list(told, src=0)
    assert told == ["word", 3]
    objects: list[object] = [None] * ranks
    dist.gather_object(rank, objects if rank == 0 else None, dst=0)
    assert rank != 0 or objects == list(range(ranks))


@check
def reduce_scatter_forms(rank: int, ranks: int) -> None:
    output = torch.empty(2, device="cuda")
    dist.reduce_scatter(
        output, [torch.full((2,), float(peer), device="cuda") for peer in range(ranks)]
    )
    assert output.tolist() == [float(rank * ranks)] * 2
    uneven = torch.empty(rank + 1, device="cuda")
    dist.reduce_scatter(uneven, [torch.ones(peer + 1, device="cuda") for peer in range(ranks)])
    assert uneven.tolist() == [float(ranks)] * (rank + 1)
    dist.reduce_scatter_tensor(output, torch.ones(2 * ranks, device="cuda"), op=dist.ReduceOp.AVG)
    assert output.tolist() == [1.0, 1.0]


@check
def all_to_all_forms(rank: int, ranks: int) -> None:
    output = torch.empty(ranks, device="cuda")
    dist.all_to_all_single(output, torch.full((ranks,), float(rank), device="cuda"))
    assert output.tolist() == list(range(ranks))
    # Rank r sends p + 1 rows to rank p.
    sizes = [peer + 1 for peer in range(ranks)]
    rows = torch.full((sum(sizes), 2), float(rank), device="cuda")
    uneven = torch.empty((ranks * (rank + 1), 2), device="cuda")
    dist.all_to_all_single(uneven, rows, [rank + 1] * ranks, sizes)
    assert uneven[:: rank + 1, 0].tolist() == list(range(ranks))
    outputs = [torch.empty(rank + 1, device="cuda") for _ in range(ranks)]
    dist.all_to_all(
        outputs, [torch.full((peer + 1,), float(rank), device="cuda") for peer in range(ranks)]
    )
    assert [one[0].item() for one in outputs] == list(range(ranks))


@check
def messages(rank: int, ranks: int) -> None:
    following, previous = (rank + 1) % ranks, (rank - 1) % ranks
    if rank == 0:
        dist.send(on_device(5.0), dst=1)
    elif rank == 1:
        tensor = torch.empty(1, device="cuda")
        assert dist.recv(tensor, src=0) == 0
        assert tensor.item() == 5.0
    # Large enough for both directions to need each other.
    outgoing = torch.full((500_000,), float(rank), device="cuda")
    incoming = torch.empty_like(outgoing)
    batch = [
        dist.P2POp(dist.isend, outgoing, following),
        dist.P2POp(dist.irecv, incoming, previous),
    ]
    for request in dist.batch_isend_irecv(batch):
        request.wait()
    assert (incoming == previous).all()
    requests = (
        [dist.irecv(incoming, src=previous)] if rank else [dist.isend(outgoing, dst=following)]
    )
    requests += (
        [dist.isend(outgoing, dst=following)] if rank else [dist.irecv(incoming, src=previous)]
    )
    for request in requests:
        assert request is not None
        request.wait()


@check
def asynchronous_work(rank: int, ranks: int) -> None:
    tensor = on_device(1.0)
    work = dist.all_reduce(tensor, async_op=True)
    future = work.get_future().then(lambda done: done.value()[0] * 2)
    assert future.wait().item() == 2.0 * ranks
    assert work.wait()
    assert work.is_completed()
    works = [dist.all_reduce(on_device(1.0), async_op=True) for _ in range(20)]
    for one in works:
        one.wait()
    raised(work.is_success, NotImplementedError, "is deprecated")
    assert work.get_future_result().wait() == 0


@check
def coalesced(rank: int, ranks: int) -> None:
    tensors = [torch.ones(length, device="cuda") for length in (1, 5, 9)]
    with dist._coalescing_manager(device=torch.device("cuda", torch.cuda.current_device())):
        for tensor in tensors:
            dist.all_reduce(tensor)
    assert all((tensor == ranks).all() for tensor in tensors)
    outputs = [torch.empty(ranks, device="cuda") for _ in range(2)]
    with dist._coalescing_manager(async_ops=True) as manager:
        for output in outputs:
            dist.all_gather_into_tensor(output, on_device(float(rank)))
    manager.wait()
    assert all(output.tolist() == list(range(ranks)) for output in outputs)
    halves = [torch.empty(1, device="cuda") for _ in range(2)]
    with dist._coalescing_manager():
        for half in halves:
            dist.reduce_scatter_tensor(half, torch.ones(ranks, device="cuda"))
    assert all(half.item() == ranks for half in halves)


@check
def functional(rank: int, ranks: int) -> None:
    import torch.distributed._functional_collectives as functional_collectives

    group = dist.group.WORLD
    reduced = functional_collectives.all_reduce(on_device(1.0), "sum", group)
    assert reduced.item() == ranks
    gathered = functional_collectives.all_gather_tensor(on_device(float(rank)), 0, group)
    assert gathered.tolist() == list(range(ranks))
    scattered = functional_collectives.reduce_scatter_tensor(
        torch.ones(ranks, device="cuda"), "avg", 0, group
    )
    assert scattered.item() == 1.0


@check
def groups_and_meshes(rank: int, ranks: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    pair = dist.new_group([0, 1])
    if rank < 2:
        tensor = on_device(1.0)
        dist.all_reduce(tensor, group=pair)
        assert tensor.item() == 2.0
    mesh = init_device_mesh("cuda", (1, ranks), mesh_dim_names=("data", "model"))
    tensor = on_device(1.0)
    dist.all_reduce(tensor, group=mesh.get_group("model"))
    assert tensor.item() == ranks
    sharded = distribute_tensor(torch.arange(4.0 * ranks, device="cuda"), mesh["model"], [Shard(0)])
    assert sharded.to_local().numel() == 4
    assert sharded.redistribute(placements=[Replicate()]).to_local().sum().item() == sum(
        range(4 * ranks)
    )


@check
def settings_of_the_group(rank: int, ranks: int) -> None:
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cuda"))
    assert isinstance(backend, dist.ProcessGroupNCCL)
    assert backend.name() == "nccl"
    assert dist.get_backend() == "nccl"
    assert dist.is_nccl_available()
    options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
    options.config.max_ctas = 4
    group = dist.new_group(pg_options=options)
    dist.all_reduce(on_device(1.0), group=group)
    assert backend.supports_splitting
    assert backend.supports_coalescing
    before = dist.distributed_c10d._get_default_group()._get_sequence_number_for_group()
    dist.all_reduce(on_device(1.0))
    assert dist.distributed_c10d._get_default_group()._get_sequence_number_for_group() == before + 1
    short = dist.new_group(timeout=timedelta(seconds=30))
    assert short._get_backend(torch.device("cuda")).options._timeout == timedelta(seconds=30)
    dist.destroy_process_group(short)
    dist.barrier(device_ids=[torch.cuda.current_device()])


@check
def refusals(rank: int, ranks: int) -> None:
    raised(
        lambda: dist.all_reduce(torch.ones(1)),
        RuntimeError,
        "No backend type associated with device type cpu",
    )
    strided = torch.ones(4, 4, device="cuda").t()[1:]
    raised(lambda: dist.all_reduce(strided), ValueError, "Tensors must be contiguous")
    raised(
        lambda: dist.all_reduce(on_device(1.0), op=dist.ReduceOp.BAND),
        ValueError,
        "ReduceOp.BAND with NCCL",
    )
    flag = torch.tensor([True], device="cuda")
    raised(
        lambda: dist.all_reduce(flag, op=dist.ReduceOp.AVG),
        TypeError,
        "ReduceOp.AVG with boolean inputs",
    )
    small = torch.empty(1, device="cuda")
    raised(
        lambda: dist.all_gather_into_tensor(small, torch.ones(3, device="cuda")),
        ValueError,
        "output tensor size must be equal to world_size times input tensor size",
    )


def main() -> None:
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for function in CHECKS:
        function(rank, ranks)
    dist.destroy_process_group()
    print(f"rank {rank}: {len(CHECKS)} checks passed", flush=True)


if __name__ == "__main__":
    main()
