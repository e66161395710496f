"""Computes the same on the CPU and on a simulated device and prints one JSON line per case: its name and what differs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

warnings.simplefilter("ignore")
DEVICE = "cuda:1"
CASES: dict[str, Callable[[str], Any]] = {}


def case(work: Callable[[str], Any]) -> Callable[[str], Any]:
    """Register a computation that takes the device and returns tensors, modules (their gradients) or numbers."""
    CASES[work.__name__] = work
    return work


def numbers(*shape: int, device: str, gradient: bool = True) -> torch.Tensor:
    """The same numbers everywhere."""
    count = int(torch.tensor(shape).prod())
    values = torch.sin(torch.arange(count, dtype=torch.float32)).view(shape)
    return values.to(device).requires_grad_(gradient)


def trained(module: nn.Module, device: str, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """The module's output and the gradients of its parameters."""
    torch.manual_seed(0)
    for parameter in module.parameters():
        with torch.no_grad():
            parameter.copy_(
                torch.cos(torch.arange(parameter.numel(), dtype=torch.float32)).view(
                    parameter.shape
                )
                / 3
            )
    output = module.to(device)(*inputs)
    output = output[0] if isinstance(output, tuple) else output
    output.square().mean().backward()
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    return [
        output.detach(),
        *gradients,
        *(value.grad for value in inputs if value.grad is not None),
    ]


@case
def lstm(device: str) -> Any:
    return trained(nn.LSTM(4, 5, 2, bidirectional=True), device, numbers(3, 2, 4, device=device))


@case
def lstm_with_projection(device: str) -> Any:
    return trained(nn.LSTM(4, 5, proj_size=3), device, numbers(3, 2, 4, device=device))


@case
def gru(device: str) -> Any:
    return trained(nn.GRU(4, 5, 2, batch_first=True), device, numbers(2, 3, 4, device=device))


@case
def rnn(device: str) -> Any:
    return trained(nn.RNN(4, 5), device, numbers(3, 2, 4, device=device))


@case
def lstm_cell(device: str) -> Any:
    return trained(nn.LSTMCell(4, 5), device, numbers(2, 4, device=device))


@case
def packed_gru(device: str) -> Any:
    packed = nn.utils.rnn.pack_padded_sequence(
        numbers(3, 2, 4, device=device, gradient=False), torch.tensor([3, 2])
    )
    layer = nn.GRU(4, 5)
    for parameter in layer.parameters():
        nn.init.constant_(parameter, 0.1)
    output, _ = layer.to(device)(packed)
    output.data.sum().backward()
    return [output.data.detach(), *(parameter.grad for parameter in layer.parameters())]


@case
def convolutions(device: str) -> Any:
    plain = trained(nn.Conv2d(4, 4, 3), device, numbers(1, 4, 6, 6, device=device))
    depthwise = trained(nn.Conv2d(4, 4, 3, groups=4), device, numbers(1, 4, 6, 6, device=device))
    transposed = trained(nn.ConvTranspose1d(4, 2, 3), device, numbers(1, 4, 6, device=device))
    return [*plain, *depthwise, *transposed]


@case
def batch_and_layer_norm(device: str) -> Any:
    batch = nn.BatchNorm1d(4)
    first = trained(batch, device, numbers(5, 4, device=device))
    second = trained(nn.LayerNorm(4), device, numbers(5, 4, device=device))
    return [
        *first,
        batch.running_mean,
        batch.running_var,
        *second,
        *trained(nn.RMSNorm(4), device, numbers(5, 4, device=device)),
    ]


@case
def transformer_layer(device: str) -> Any:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return trained(layer, device, numbers(2, 3, 8, device=device))


@case
def attention(device: str) -> Any:
    query = numbers(1, 2, 4, 8, device=device)
    output = functional.scaled_dot_product_attention(query, query, query, is_causal=True)
    output.sum().backward()
    return [output.detach(), query.grad]


@case
def ctc_loss(device: str) -> Any:
    scores = numbers(6, 2, 5, device=device)
    targets = torch.tensor([[1, 2, 3], [2, 4, 1]], device=device)
    loss = functional.ctc_loss(
        scores.log_softmax(2), targets, torch.tensor([6, 5]), torch.tensor([3, 2])
    )
    loss.backward()
    return [loss.detach(), scores.grad]


@case
def losses(device: str) -> Any:
    scores = numbers(3, 4, device=device)
    target = torch.tensor([0, 2, 1], device=device)
    loss = functional.cross_entropy(scores, target, label_smoothing=0.1) + functional.mse_loss(
        scores, scores.detach() + 1
    )
    loss.backward()
    return [loss.detach(), scores.grad]


@case
def sparse_matrix(device: str) -> Any:
    dense = numbers(3, 3, device=device)
    sparse = dense.to_sparse()
    product = torch.sparse.mm(sparse, numbers(3, 2, device=device, gradient=False))
    product.sum().backward()
    compressed = dense.detach().to_sparse_csr()
    return [
        product.detach(),
        dense.grad,
        compressed @ numbers(3, 2, device=device, gradient=False),
        (sparse + sparse).to_dense().detach(),
    ]


@case
def sparse_embedding(device: str) -> Any:
    table = nn.Embedding(6, 3, sparse=True)
    nn.init.constant_(table.weight, 0.5)
    table.to(device)
    optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    table(torch.tensor([1, 4, 1], device=device)).square().sum().backward()
    gradient = table.weight.grad.coalesce()
    optimizer.step()
    return [gradient.indices(), gradient.values(), table.weight.detach()]


@case
def embedding_bag(device: str) -> Any:
    table = nn.EmbeddingBag(6, 3, mode="sum")
    nn.init.constant_(table.weight, 0.5)
    output = table.to(device)(
        torch.tensor([1, 2, 4, 5], device=device), torch.tensor([0, 2], device=device)
    )
    output.sum().backward()
    return [output.detach(), table.weight.grad]


@case
def optimizers(device: str) -> Any:
    found = []
    for options in ({"foreach": True}, {"fused": True}, {"foreach": False}):
        layer = nn.Linear(3, 2)
        for parameter in layer.parameters():
            nn.init.constant_(parameter, 0.3)
        layer.to(device)
        optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, **options)
        for _ in range(2):
            optimizer.zero_grad()
            layer(numbers(4, 3, device=device, gradient=False)).square().sum().backward()
            optimizer.step()
        found += [parameter.detach() for parameter in layer.parameters()]
    return found


@case
def half_precision(device: str) -> Any:
    value = numbers(3, 4, device=device, gradient=False).half()
    back = torch.nn.functional.softmax(value, -1, dtype=torch.float32)
    return [
        (value @ value.T).float(),
        value.cumsum(0).float(),
        back,
        value.sort()[0].float(),
        value.bfloat16().exp().float(),
    ]


@case
def half_products_and_convolutions(device: str) -> Any:
    """Computed in float32; what differs in type is refused in torch's own words."""
    found = []
    for low in (torch.float16, torch.bfloat16):
        layer = torch.nn.Conv2d(2, 3, 3).to(low)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.copy_(torch.arange(parameter.numel()).view_as(parameter) % 5 / 8)
        layer.to(device)
        value = (torch.arange(50, device=device) % 7 / 8).view(1, 2, 5, 5).to(low).requires_grad_()
        product = layer(value).flatten(2)[0]
        total = torch.addmm(product, product, product[:, :9].T @ product)
        total.sum().backward()
        assert total.dtype == value.grad.dtype == layer.weight.grad.dtype == low
        mixed = (torch.matmul, (product, product.T.float())), (layer, (value.float(),))
        for call, arguments in mixed:
            try:
                call(*arguments)
            except RuntimeError:
                continue
            raise AssertionError("types were mixed")
        found += [product.float(), layer.bias.grad.float() / 1000]
    return found


@case
def low_precision_without_cpu_kernel(device: str) -> Any:
    # torch 2.13 and 2.15: "cdist" not implemented for 'Half' on the CPU; the reference is computed in float32.
    value = numbers(3, 4, device=device, gradient=False)
    if device == "cpu":
        return [
            functional.grid_sample(
                value.half().float().view(1, 1, 3, 4), torch.zeros(1, 2, 2, 2), align_corners=False
            )
        ]
    return [
        functional.grid_sample(
            value.half().view(1, 1, 3, 4),
            torch.zeros(1, 2, 2, 2, device=device).half(),
            align_corners=False,
        ).float()
    ]


@case
def linear_algebra(device: str) -> Any:
    matrix = numbers(3, 3, device=device, gradient=False) + 3 * torch.eye(3, device=device)
    symmetric = matrix @ matrix.T
    return [
        torch.linalg.inv(matrix),
        torch.linalg.solve(matrix, matrix),
        torch.linalg.cholesky(symmetric),
        torch.linalg.eigvalsh(symmetric),
    ]


@case
def indexing(device: str) -> Any:
    value = numbers(4, 3, device=device, gradient=False)
    value[torch.tensor([0, 2])] = 7.0
    value[value > 1] += 1
    value[:, 1].mul_(2)
    return [
        value,
        value[torch.tensor([1, 3], device=device)],
        value.nonzero(),
        value.masked_fill(value > 2, 0.0),
        value.take_along_dim(value.argsort(1), 1),
    ]


@case
def views_and_resizes(device: str) -> Any:
    value = numbers(4, 3, device=device, gradient=False)
    view = value.t()[1:, ::2]
    view.add_(1)
    out = torch.empty(0, device=device)
    torch.add(value, value, out=out)
    shared = out.view(-1)
    out.resize_(2, 2)
    return [
        value,
        view.contiguous(),
        out,
        shared,
        torch.fft.fft(value).abs(),
        value.unfold(0, 2, 1),
    ]


def compare(expected: Any, actual: Any) -> str:
    """What differs; an empty text where nothing does."""
    if len(expected) != len(actual):
        return f"{len(actual)} tensors instead of {len(expected)}"
    for position, (one, other) in enumerate(zip(expected, actual, strict=True)):
        if other.device != torch.device(DEVICE):
            return f"tensor {position} is on {other.device}"
        try:
            torch.testing.assert_close(
                other.cpu(), one, rtol=2e-3 if "half" in name else 1e-4, atol=1e-4
            )
        except AssertionError as error:
            return f"tensor {position}: {' '.join(str(error).split())}"
    return ""


for name, work in CASES.items():
    try:
        problem = compare(work("cpu"), work(DEVICE))
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    print(json.dumps({"case": name, "problem": problem}), flush=True)
