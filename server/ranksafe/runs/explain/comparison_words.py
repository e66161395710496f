"""The sentences for what shows only between ranks."""

from __future__ import annotations

from ranksafe.localization import Translated

SAME_SAMPLES = Translated(
    en="ranks {ranks} trained on the same samples in each of the first {batches} batches: nothing gives every rank a "
    "share of its own (DistributedSampler, accelerator.prepare)",
    zh_cn="rank {ranks} 在前 {batches} 个批次中训练的样本完全相同：没有给每个 rank 分配各自的数据"
    "（DistributedSampler、accelerator.prepare）",
)
DIVERGED = Translated(
    en="after step {step} the ranks {ranks} have different weights ({names}) in a model that "
    "DistributedDataParallel keeps equal",
    zh_cn="第 {step} 步之后，rank {ranks} 的权重不同（{names}），而 DistributedDataParallel 应使它们保持一致",
)
DIVERGED_BYPASS = Translated(
    en="the module inside DistributedDataParallel is called past it here, so its gradients are not averaged: after "
    "step {step} the ranks {ranks} have different weights ({names})",
    zh_cn="此处绕过 DistributedDataParallel 直接调用了内部模块，梯度没有求平均："
    "第 {step} 步之后，rank {ranks} 的权重不同（{names}）",
)
DIVERGED_ALONE = Translated(
    en="ranks {ranks} began with the same weights and have different ones after step {step}: the model is not wrapped "
    "(DistributedDataParallel, accelerator.prepare), so nothing averaged the gradients",
    zh_cn="rank {ranks} 的初始权重相同，第 {step} 步之后却不同：模型没有被包装（DistributedDataParallel、"
    "accelerator.prepare），梯度没有求平均",
)
BUFFERS = Translated(
    en="after step {step} the ranks {ranks} have different values in the buffers {names}: each rank adds its own "
    "batch, and DistributedDataParallel overwrites all of them with rank 0's before the next forward. Reduce them over "
    "the ranks where they are changed",
    zh_cn="第 {step} 步之后，rank {ranks} 的 buffer {names} 的值不同：每个 rank 只累积自己的批次，而 "
    "DistributedDataParallel 会在下一次 forward 之前用 rank 0 的值覆盖它们。请在修改处对各 rank 做归约",
)
SPLITS = Translated(
    en="random_split divided the data differently on every rank: what one rank trains on, another validates on. Pass "
    "generator=torch.Generator().manual_seed(…)",
    zh_cn="random_split 在各 rank 上的划分不同：一个 rank 的训练数据是另一个 rank 的验证数据。请传入 "
    "generator=torch.Generator().manual_seed(…)",
)
ORDERS = Translated(
    en="the DistributedSamplers of the ranks differ in {what} ({values}): their shares overlap, and some samples are "
    "never seen",
    zh_cn="各 rank 的 DistributedSampler 的 {what} 不同（{values}）：它们分到的数据互相重叠，有些样本永远不会被用到",
)
FILES = Translated(
    en="ranks {ranks} all write {path}: the last one wins, or the file is damaged. Write it on one rank",
    zh_cn="rank {ranks} 都在写入 {path}：最后写入者覆盖其他，或文件损坏。请只在一个 rank 上写入",
)
IDLE = Translated(
    en="rank {rank} computed nothing while ranks {ranks} trained: its GPU was idle",
    zh_cn="rank {rank} 没有进行任何计算，而 rank {ranks} 在训练：它的 GPU 处于空闲",
)
