"""Calls that CUDA refuses or answers in its own way, one per process: ``calls.py NAME``; ``calls.py --names`` lists them."""

import json
import os
import sys
from collections.abc import Callable

import torch
from torch import nn

CALLS: dict[str, Callable[[], object]] = {}


def call(function: Callable[[], object]) -> Callable[[], object]:
    CALLS[function.__name__] = function
    return function


@call
def input_left_on_the_cpu() -> object:
    return nn.Linear(4, 4).cuda()(torch.ones(2, 4))


@call
def model_left_on_the_cpu() -> object:
    return nn.Linear(4, 4)(torch.ones(2, 4, device="cuda"))


@call
def targets_left_on_the_cpu() -> object:
    return nn.functional.cross_entropy(
        torch.randn(4, 3, device="cuda"), torch.zeros(4, dtype=torch.long)
    )


@call
def index_left_on_the_gpu() -> object:
    return torch.ones(4)[torch.zeros(2, dtype=torch.long, device="cuda")]


@call
def mask_left_on_the_cpu() -> object:
    return torch.ones(4, device="cuda")[torch.tensor([True, False, True, False])].sum().item()


@call
def generator_of_the_cpu() -> object:
    return torch.randn(4, device="cuda", generator=torch.Generator().manual_seed(0))


@call
def numpy_of_a_gpu_tensor() -> object:
    return torch.ones(4, device="cuda").numpy()


@call
def device_that_does_not_exist() -> object:
    return torch.ones(4, device="cuda:63")


@call
def set_device_that_does_not_exist() -> object:
    torch.cuda.set_device(63)
    return None


@call
def properties_of_a_device_that_does_not_exist() -> object:
    return torch.cuda.get_device_properties(63)


@call
def checkpoint_of_a_device_that_does_not_exist() -> object:
    torch.save(torch.ones(4), "checkpoint.pt")
    return torch.load("checkpoint.pt", map_location="cuda:63")


@call
def pinning_a_gpu_tensor() -> object:
    return torch.ones(4, device="cuda").pin_memory()


@call
def dtypes_that_differ_in_a_product() -> object:
    return torch.ones(2, 2, device="cuda").half() @ torch.ones(2, 2, device="cuda")


@call
def product_of_whole_numbers() -> object:
    whole = torch.ones(2, 2, device="cuda", dtype=torch.long)
    return whole @ whole


@call
def index_out_of_range_in_an_embedding() -> object:
    return nn.Embedding(4, 2).cuda()(torch.tensor([9], device="cuda")).sum().item()


@call
def index_out_of_range() -> object:
    return torch.ones(4, device="cuda")[torch.tensor([9], device="cuda")].sum().item()


@call
def class_out_of_range() -> object:
    loss = nn.functional.cross_entropy(
        torch.randn(4, 3, device="cuda"), torch.full((4,), 7, device="cuda")
    )
    return loss.item()


@call
def probability_out_of_range() -> object:
    two = torch.full((4,), 2.0, device="cuda")
    return nn.functional.binary_cross_entropy(two, two).item()


@call
def negative_probability() -> object:
    return torch.multinomial(torch.tensor([-1.0, 2.0], device="cuda"), 1).item()


@call
def scatter_out_of_range() -> object:
    zeros = torch.zeros(4, device="cuda")
    return zeros.scatter_(0, torch.tensor([9], device="cuda"), 1.0).sum().item()


@call
def more_than_the_memory() -> object:
    return torch.empty(2**50, dtype=torch.uint8, device="cuda")


@call
def until_the_memory_is_full() -> object:
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(2**30 / total)
    kept = []
    while True:
        kept.append(torch.empty(100 * 2**20, dtype=torch.uint8, device="cuda"))


@call
def cuda_in_a_forked_child() -> object:
    class Batches(torch.utils.data.Dataset):  # type: ignore[type-arg]
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> torch.Tensor:
            return torch.ones(2).cuda()

    torch.cuda.init()
    return next(iter(torch.utils.data.DataLoader(Batches(), num_workers=1)))


@call
def nondeterministic_where_it_is_forbidden() -> object:
    torch.use_deterministic_algorithms(True)
    scores = torch.ones(2, 3, 8, 8, device="cuda", requires_grad=True)
    nn.functional.interpolate(scores, scale_factor=2, mode="bilinear").sum().backward()
    return None


@call
def cublas_where_nondeterminism_is_forbidden() -> object:
    os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
    torch.use_deterministic_algorithms(True)
    return (torch.ones(4, 4, device="cuda") @ torch.ones(4, 4, device="cuda")).sum().item()


@call
def gloo_group_of_gpu_tensors() -> object:
    _group("gloo", 1, 0, "store-gloo")
    value = torch.ones(2, device="cuda")
    torch.distributed.reduce_scatter_tensor(torch.ones(2, device="cuda"), value)
    return value.sum().item()


@call
def nccl_group_of_cpu_tensors() -> object:
    _group("nccl", 1, 0, "store-nccl")
    torch.distributed.all_reduce(torch.ones(2))
    return None


@call
def nccl_wrong_output_size() -> object:
    _group("nccl", 1, 0, "store-sizes")
    torch.distributed.all_gather_into_tensor(
        torch.ones(3, device="cuda"), torch.ones(2, device="cuda")
    )
    return None


@call
def nccl_dtypes_that_differ() -> object:
    _group("nccl", 1, 0, "store-dtypes")
    torch.distributed.all_gather_into_tensor(
        torch.ones(2, device="cuda"), torch.ones(2, device="cuda").half()
    )
    return None


@call
def nccl_of_a_tensor_with_gaps() -> object:
    _group("nccl", 1, 0, "store-gaps")
    torch.distributed.all_reduce(torch.ones(4, 4, device="cuda").t()[::2])
    return None


@call
def nccl_two_ranks_on_one_gpu() -> object:
    torch.multiprocessing.spawn(_reduce_on_the_first_gpu, nprocs=2)
    return None


@call
def nccl_group_of_one() -> object:
    _group("nccl", 1, 0, "store-one")
    value = torch.ones(2, device="cuda")
    torch.distributed.all_reduce(value)
    torch.distributed.barrier()
    gathered = [None]
    torch.distributed.all_gather_object(gathered, {"a": 1})
    torch.distributed.destroy_process_group()
    return [value.tolist(), gathered]


@call
def send_to_oneself() -> object:
    _group("nccl", 1, 0, "store-oneself")
    torch.distributed.send(torch.ones(2, device="cuda"), dst=0)
    return None


def _group(backend: str, ranks: int, rank: int, store: str) -> None:
    torch.cuda.set_device(0)
    torch.distributed.init_process_group(
        backend,
        store=torch.distributed.FileStore(os.path.abspath(store), ranks),
        rank=rank,
        world_size=ranks,
    )


def _reduce_on_the_first_gpu(rank: int) -> None:
    _group("nccl", 2, rank, "store-two")
    torch.distributed.all_reduce(torch.ones(2, device="cuda"))
    torch.cuda.synchronize()


@call
def mixed_precision_step() -> object:
    torch.manual_seed(0)
    model = nn.Linear(8, 8).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        result = model(torch.ones(2, 8, device="cuda"))
        loss = result.square().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return [str(result.dtype), str(loss.dtype), scaler.get_scale()]


@call
def unscaling_twice() -> object:
    model = nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(model(torch.ones(2, 8, device="cuda")).mean()).backward()
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)
    return None


@call
def half_precision_gradients_unscaled() -> object:
    model = nn.Linear(8, 8).cuda().half()
    optimizer = torch.optim.SGD(model.parameters())
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(model(torch.ones(2, 8, device="cuda").half()).mean()).backward()
    scaler.step(optimizer)
    return None


@call
def attention_kernels() -> object:
    # Which of torch's attention kernels take what: the answer decides how much memory a model needs.
    from torch.nn.attention import SDPBackend, sdpa_kernel

    answers = {}
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for backend in (
            SDPBackend.FLASH_ATTENTION,
            SDPBackend.EFFICIENT_ATTENTION,
            SDPBackend.MATH,
        ):
            query = torch.randn(1, 2, 16, 64, device="cuda", dtype=dtype)
            try:
                with sdpa_kernel(backend):
                    nn.functional.scaled_dot_product_attention(query, query, query)
                answers[f"{dtype} {backend.name}"] = "runs"
            except RuntimeError as error:
                answers[f"{dtype} {backend.name}"] = str(error).splitlines()[0]
    return answers


@call
def what_the_device_says() -> object:
    properties = torch.cuda.get_device_properties(0)
    return {
        "is_available": torch.cuda.is_available(),
        "bf16": torch.cuda.is_bf16_supported(),
        "capability": torch.cuda.get_device_capability(),
        "name": properties.name,
        "total_memory": properties.total_memory,
        "multiprocessors": properties.multi_processor_count,
        "warp_size": properties.warp_size,
        "shared_memory_per_block_optin": properties.shared_memory_per_block_optin,
        "l2": properties.L2_cache_size,
        "threads_per_multiprocessor": properties.max_threads_per_multi_processor,
        "nccl_available": torch.distributed.is_nccl_available(),
        "arch_list_has_own": f"sm_{properties.major}{properties.minor}"
        in torch.cuda.get_arch_list(),
        "cudnn": torch.backends.cudnn.is_available(),
        "flash_enabled": torch.backends.cuda.flash_sdp_enabled(),
        "stream": torch.cuda.current_stream().cuda_stream,
        "events": _seconds_between_events() >= 0,
        "pinned": torch.ones(2).pin_memory().is_pinned(),
    }


def _seconds_between_events() -> float:
    first, second = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    torch.ones(8, device="cuda").sum()
    second.record()
    second.synchronize()
    return first.elapsed_time(second)


@call
def triton_kernel() -> object:
    # From a module of its own: Triton reads a kernel's source from its file.
    from triton_add import add

    return add(torch.ones(8, device="cuda"), torch.ones(8, device="cuda")).tolist()


@call
def compiled_function() -> object:
    return torch.compile(lambda value: value.sin().cos())(torch.zeros(4, device="cuda")).tolist()


@call
def cuda_graph() -> object:
    value = torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = value + 1
    value.fill_(3)
    graph.replay()
    return result.tolist()


if __name__ == "__main__":
    if sys.argv[1:] == ["--names"]:
        print(json.dumps(sorted(CALLS)))
    else:
        answer = CALLS[sys.argv[1]]()
        torch.cuda.synchronize()
        if isinstance(answer, torch.Tensor):
            answer = [str(answer.dtype), list(answer.shape), answer.device.type]
        print(json.dumps({"case": "answer", "answer": answer}))
