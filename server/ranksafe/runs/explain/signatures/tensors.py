"""Tensors that do not fit together: sizes, types, indices, gradients; the same on one GPU.

The messages are those of torch 2.13.0 (libtorch, ``torch/nn/functional.py``, ``torch/amp``); older wordings, and
numpy's, as public logs have them.
"""

from __future__ import annotations

from functools import partial

from ranksafe.runs.explain.signatures.signature import Signature, ordinary, signature

_SHAPE = "shape-mismatch"
_DTYPE = "dtype-mismatch"
_GRADIENT = "no-gradient"

_of_loss = partial(
    ordinary,
    _SHAPE,
    en="The loss needs target and input of one shape, and gets {one} and {two}: add or take away a dimension "
    "(unsqueeze(1), squeeze(-1)), or give the model as many outputs as the target has.",
    zh="损失函数要求目标与输入形状相同，而得到 {one} 与 {two}：请增加或去掉一维（unsqueeze(1)、squeeze(-1)），"
    "或让模型的输出数与目标一致。",
)

SIGNATURES: tuple[Signature, ...] = (
    signature(
        _SHAPE,
        # deepspeed.readthedocs.io, zero3: a partitioned parameter is torch.Size([0]) until it is gathered.
        r"shape '(?P<shape>\[(?:-?\d+, )*0(?:, -?\d+)*\])' is invalid for input of size (?P<size>[1-9]\d*)"
        r"|mat1 and mat2 shapes cannot be multiplied \((?P<one>\d+x\d+ and 0x\d+)\)"
        r"|size mismatch, got input \(\d+\), mat \(\d+x\d+\), vec \(0\)",
        raised_only=True,
        en="A size is 0 here[[: {size} elements do not make {shape}]][[ ({one})]]. Under DeepSpeed ZeRO-3 or FSDP a "
        "weight has the size 0 (or only this rank's share) outside of its own forward, so a size that was read from it "
        "there, such as the vocabulary's, is wrong: take sizes from the configuration, and gather a weight before you "
        "read or resize it (deepspeed.zero.GatheredParameters, FSDP.summon_full_params). Without them look for where "
        "the 0 comes from.",
        zh="此处有一个大小为 0[[：{size} 个元素不能组成 {shape}]][[（{one}）]]。在 DeepSpeed ZeRO-3 或 FSDP 下，权重在"
        "其自身的 forward 之外大小为 0（或只有该 rank 的分片），因此在那里从权重读取的大小（例如词表大小）是错的："
        "请从配置中取得大小，读取或调整权重之前先收集它（deepspeed.zero.GatheredParameters、FSDP.summon_full_params）。"
        "若未使用它们，请查明 0 的来源。",
    ),
    ordinary(
        _SHAPE,
        r"mat1 and mat2 shapes cannot be multiplied \((?P<one>\d+x(?P<got>\d+)) and (?P<two>(?P<needs>\d+)x\d+)\)"
        r"|size mismatch, m1: \[(?P<old>[\dx ]+)\], m2: \[(?P<older>[\dx ]+)\]",
        en="The input does not fit the weight of this layer[[: {one} and {two}, so the layer takes {needs} features "
        "and gets {got}]][[: {old} and {older}]]. The layer was made for another size of image, sequence or embedding, "
        "or what is before it was changed.",
        zh="输入与该层的权重不匹配[[：{one} 与 {two}，即该层需要 {needs} 个特征，而得到 {got} 个]][[：{old} 与 "
        "{older}]]。该层是为其他大小的图像、序列或嵌入创建的，或其前面的部分有改动。",
    ),
    ordinary(
        _SHAPE,
        r"The size of tensor a \((?P<one>\d+)\) must match the size of tensor b \((?P<two>\d+)\) at non-singleton "
        r"dimension (?P<dimension>\d+)",
        en="Two tensors are combined element by element, and their sizes differ in dimension {dimension}: {one} and "
        "{two}. Look for what made one of them: a length that was not padded or cut like the other's, a table or "
        "mask of a fixed size, a last batch with fewer samples, or a dimension that squeeze() or a mean took away.",
        zh="两个张量逐元素运算，而它们在第 {dimension} 维的大小不同：{one} 与 {two}。请查看其来源："
        "没有像另一个那样填充或截断的长度、固定大小的表或掩码、样本较少的最后一个批次，或被 squeeze()、"
        "求均值去掉的维度。",
    ),
    ordinary(
        _SHAPE,
        r"Sizes of tensors must match except in dimension (?P<dimension>\d+)\. (?:Expected size (?P<one>\d+) but got "
        r"size (?P<two>\d+)|Got (?P<first>\d+) and (?P<second>\d+))",
        en="torch.cat needs equal sizes in every dimension but {dimension}[[, and got {one} and {two}]][[, and got "
        "{first} and {second}]]. Where a decoder meets what an encoder kept (a U-Net's skip connections), the input's "
        "size has to be divisible by the whole downsampling; else crop, pad or resize one of them.",
        zh="torch.cat 要求除第 {dimension} 维外大小都相同[[，而得到 {one} 与 {two}]][[，而得到 {first} 与 {second}]]。"
        "若解码器与编码器保留的特征相拼接（U-Net 的跳跃连接），输入大小必须能被总下采样倍数整除；否则请裁剪、"
        "填充或缩放其中之一。",
    ),
    ordinary(
        _SHAPE,
        r"stack expects each tensor to be equal size, but got \[(?P<one>[\d, ]*)\] at entry \d+ and "
        r"\[(?P<two>[\d, ]*)\] at entry (?P<entry>\d+)",
        en="Samples of different sizes are put into one batch: [{one}] and [{two}] (entry {entry}). Pad or crop them "
        "to one size, or write a collate_fn.",
        zh="大小不同的样本被放入同一批次：[{one}] 与 [{two}]（第 {entry} 项）。请填充或裁剪到相同大小，或编写 "
        "collate_fn。",
    ),
    ordinary(
        _SHAPE,
        r"Expected input batch_size \((?P<one>\d+)\) to match target batch_size \((?P<two>\d+)\)",
        en="The loss gets predictions for {one} samples and targets for {two}: an incomplete last batch against "
        "targets of a fixed size (make them from the batch, or drop_last=True), a reshape that mixes samples with "
        "another dimension, or predictions and targets of different batches.",
        zh="损失函数得到 {one} 个样本的预测和 {two} 个目标："
        "不完整的最后一个批次对上了固定大小的目标（请由批次生成目标，或设置 drop_last=True）、reshape "
        "混淆了样本与其他维度，或预测与目标来自不同的批次。",
    ),
    ordinary(
        _SHAPE,
        # torch 1.x and 2.x, torch.cat.
        r"Tensors must have same number of dimensions: got (?P<one>\d+) and (?P<two>\d+)",
        en="torch.cat gets tensors of {one} and of {two} dimensions: flatten the one or add a dimension to the other "
        "(unsqueeze); often one of them lost or kept a dimension for the batch, the time or the samples.",
        zh="torch.cat 得到的张量分别为 {one} 维和 {two} 维：请展平其中一个，或为另一个增加一维（unsqueeze）；"
        "常见原因是其中一个丢失或多出了批次、时间或样本的维度。",
    ),
    _of_loss(
        r"Target size \((?P<one>torch\.Size\([^)]*\))\) must be the same as input size "
        r"\((?P<two>torch\.Size\([^)]*\))\)",
    ),
    _of_loss(
        r"Using a target size \((?P<one>torch\.Size\([^)]*\))\) that is different to the input size "
        r"\((?P<two>torch\.Size\([^)]*\))\)",
    ),
    ordinary(
        _SHAPE,
        r"Given groups=\d+, weight of size (?P<weight>\[[\d, ]+\]), expected input(?P<input>\[[\d, ]+\]) to have "
        r"(?P<needs>\d+) channels, but got (?P<got>\d+)",
        en="The convolution takes {needs} channels and gets {got} (input {input}, weight {weight}). Channels are the "
        "dimension after that of the batch: other data than the layer was made for, channels in another place, or a "
        "batch dimension that is missing (squeeze() of a batch of one sample drops it).",
        zh="卷积需要 {needs} 个通道，而得到 {got} 个（输入 {input}，权重 {weight}）。通道是批次之后的那一维：数据与该层"
        "不匹配、通道在其他位置，或缺少批次维（对只有一个样本的批次 squeeze() 会去掉它）。",
    ),
    ordinary(
        _SHAPE,
        r"shape '(?P<shape>\[[\d, -]+\])' is invalid for input of size (?P<size>\d+)"
        r"|cannot reshape array of size (?P<elements>\d+) into shape (?P<into>\([\d, -]+\))"
        r"|view size is not compatible with input tensor's size and stride",
        en="A tensor cannot be given this shape[[: {size} elements do not make {shape}]][[: {elements} elements do "
        "not make {into}]]. Where a size in it is fixed, the data has another one here (a smaller last batch, "
        "another length or image size): take it from the tensor (x.size(0)), and use reshape for what view refuses.",
        zh="张量无法变为该形状[[：{size} 个元素不能组成 {shape}]][[：{elements} 个元素不能组成 {into}]]。"
        "如果其中某个大小是固定的，则此处的数据大小不同（较小的最后一个批次、其他长度或图像尺寸）："
        "请从张量取得大小（x.size(0)）；view 不接受时请用 reshape。",
    ),
    ordinary(
        _SHAPE,
        r"shape mismatch: (?:indexing (?:arrays|tensors) could not be broadcast together with shapes "
        r"(?P<shapes>[^\n]+)"
        r"|value (?:tensor|array) of shape (?P<value>[\[(][^\])]*[\])]) (?:cannot|could not) be broadcast to indexing "
        r"result of shape (?P<result>[\[(][^\])]*[\])]))",
        en="What selects and what is selected do not have the same shape[[ ({shapes})]][[: {value} is put where there "
        "is room for {result}]].",
        zh="索引与被索引的内容形状不一致[[（{shapes}）]][[：把 {value} 放入 {result} 的位置]]。",
    ),
    ordinary(
        _SHAPE,
        r"operands could not be broadcast together with shapes (?P<shapes>[^\n]+)"
        r"|could not broadcast input array from shape (?P<one>\S+) into shape (?P<two>\S+)"
        r"|output with shape (?P<output>\[[^\]]*\]) doesn't match the broadcast shape (?P<broadcast>\[[^\]]*\])"
        r"|The expanded size of the tensor \((?P<expanded>\d+)\) must match the existing size \((?P<existing>\d+)\)"
        r"|all the input array dimensions (?:except for the concatenation axis )?must match exactly"
        r"|mat1 dim 1 must match mat2 dim 0"
        r"|must match the size of tensor|einsum\(\): "
        r"|input\.size\(-1\) must be equal to input_size|Expected tensor to have size \d+ at dimension"
        r"|The shape of the mask (?P<mask>\[[^\]]*\]) at index \d+ does not match the shape of the indexed tensor",
        en="The shapes do not fit together[[: {shapes}]][[: {one} into {two}]][[: {output} and {broadcast}]]"
        "[[: {existing} cannot be expanded to {expanded}]]. See where each size comes from: a buffer or a table of a "
        "fixed length, a length that was declared and is not the data's, or a transposed dimension.",
        zh="形状不匹配[[：{shapes}]][[：{one} 到 {two}]][[：{output} 与 {broadcast}]][[：{existing} 无法扩展为 "
        "{expanded}]]。请查看每个大小的来源：固定长度的缓冲区或表、声明的长度与数据不符，或维度被转置。",
    ),
    ordinary(
        _DTYPE,
        r"Found dtype (?P<one>\w+) but expected (?P<two>\w+)"
        r"|Input type \((?P<input>[\w.:]+)\) and (?:weight|bias) type \((?P<weight>[\w.:]+)\) should be the same"
        r"|Index put requires the source and destination dtypes match, got (?P<source>\w+) for the destination and "
        r"(?P<destination>\w+)",
        en="An operation, or the backward pass of one, got tensors of two types[[ ({one} and {two})]]"
        "[[ ({input} and {weight})]][[ ({source} and {destination})]]: convert the input or the loss to the model's "
        "type, or run the forward pass under autocast.",
        zh="某个操作或其反向传播收到了两种类型的张量[[（{one} 与 {two}）]][[（{input} 与 {weight}）]]"
        "[[（{source} 与 {destination}）]]：请把输入或损失转换为模型的类型，或在 autocast 下运行前向传播。",
    ),
    ordinary(
        _DTYPE,
        r"\"(?P<op>\w+)\" not implemented for '(?P<type>\w+)'",
        en="There is no {op} for {type} on this device: convert the tensor to another type (half precision is for "
        "GPUs; "
        "labels and indices are whole numbers).",
        zh="此设备上没有适用于 {type} 的 {op}：请把张量转换为其他类型（半精度用于 GPU；标签和索引应为整数）。",
    ),
    ordinary(
        "index-out-of-range",
        r"IndexError: index out of range in self",
        en="An embedding got an index that is not below its number of rows: an id in the data (of an item, a category, "
        "a token; after tokens were added: model.resize_token_embeddings(len(tokenizer))), or a position beyond the "
        "longest sequence that the model knows. Compare the largest index with num_embeddings.",
        zh="embedding 收到的索引不小于其行数：数据中的 id（物品、类别、token；添加 token 之后需调用 "
        "model.resize_token_embeddings(len(tokenizer))），或位置超出模型所支持的最大长度。请把最大索引与 "
        "num_embeddings 比较。",
    ),
    ordinary(
        "index-out-of-range",
        r"IndexError: Target (?P<target>-?\d+) is out of bounds",
        en="A label ({target}) is not among the classes that the loss gets scores for. Either the classes are not "
        "counted from 0, or the model's output is narrower than their number; or {target} marks what has no label "
        "(255 and -1 often do): give it to the loss as ignore_index.",
        zh="标签（{target}）不在损失函数所得到的类别之中。类别没有从 0 开始编号，或模型输出的宽度小于类别数；或者 "
        "{target} 表示没有标签（常用 255 和 -1）：请作为 ignore_index 传给损失函数。",
    ),
    ordinary(
        _GRADIENT,
        r"does not require grad and does not have a grad_fn",
        en="backward was called on a value that no trainable parameter had part in: all of them are frozen, the "
        "forward ran under no_grad, or a detach cut the graph. With gradient checkpointing on a frozen base model "
        "call "
        "enable_input_require_grads().",
        zh="对一个没有可训练参数参与的值调用了 backward：参数全部冻结、前向在 no_grad 下运行，或 detach 切断了计算图。"
        "对冻结的基础模型使用梯度检查点时，请调用 enable_input_require_grads()。",
    ),
    ordinary(
        "backward-twice",
        r"Trying to backward through the graph a second time",
        en="backward went through the same part of the graph twice: a value of an earlier step (a hidden state, a "
        "running loss) is still attached. Detach it, or sum the losses and call backward once.",
        zh="backward 两次经过了计算图的同一部分：较早一步的值（隐藏状态、累计损失）仍连在图上。请 detach，"
        "或把损失相加后只调用一次 backward。",
    ),
    ordinary(
        _GRADIENT,
        r"grad can be implicitly created only for scalar outputs",
        en="backward was called on a tensor of several elements: reduce the loss first (mean, sum).",
        zh="对含多个元素的张量调用了 backward：请先归约损失（mean、sum）。",
    ),
    ordinary(
        "numpy-of-a-tensor",
        r"can't convert (?P<device>\S+) device type tensor to numpy|Can't call numpy\(\) on Tensor that requires grad",
        en="numpy cannot read this tensor[[ (on {device})]]: use tensor.detach().cpu().numpy().",
        zh="numpy 无法读取该张量[[（位于 {device}）]]：请使用 tensor.detach().cpu().numpy()。",
    ),
    ordinary(
        "meta-tensor",
        r"Cannot copy out of meta tensor; no data!|is on the meta device, (?:we need|which)",
        en="Some parameters were never loaded (they are on the meta device): the checkpoint lacks them, or the "
        "model is "
        "moved before its weights are there. Use to_empty and load the weights, or load without low_cpu_mem_usage.",
        zh="部分参数从未加载（位于 meta 设备）：检查点中没有它们，或在加载权重前就移动了模型。请用 to_empty "
        "后加载权重，"
        "或不使用 low_cpu_mem_usage。",
    ),
    ordinary(
        "mixed-precision",
        r"Attempting to unscale FP16 gradients",
        en="The gradient scaler got parameters that are themselves half precision: keep the trainable parameters in "
        "float32 and let autocast convert, or train in bf16 without a scaler.",
        zh="梯度缩放器得到的参数本身就是半精度：请让可训练参数保持 float32 并由 autocast 转换，或用 bf16 "
        "训练且不使用缩放器。",
    ),
    ordinary(
        "not-finite",
        r"Function '(?P<name>\w+)' returned nan values in its \d+th output"
        # Megatron-LM, megatron/core/rerun_state_machine.py and distributed/param_and_grad_buffer.py.
        r"|Unexpected result (?:nan|inf)\b|[Ff]ound (?:NaN|Inf|inf) in local (?:grad|forward)"
        r"|Expected parameter \w+ \([^\n]*to satisfy the constraint \w+\([^\n]*invalid values",
        en="The numbers broke down (NaN or infinite)[[ in the backward pass of {name}]]: look at the learning rate, "
        "at "
        "the data of this step, and at divisions and logarithms of zero.",
        zh="数值出现 NaN 或无穷[[，发生在 {name} 的反向传播]]：请检查学习率、该步的数据，以及除以零和对零取对数。",
    ),
    ordinary(
        "empty-data",
        r"num_samples should be a positive integer value, but got num_samples=0|cannot sample n_sample <= 0 samples"
        r"|The batch received was empty, your model won't be able to train on it",
        en="There is nothing to draw from: the data set is empty here, because no file was found, everything was "
        "filtered out, or its columns were removed.",
        zh="没有可抽取的样本：此处的数据集为空，原因是没有找到文件、全部被过滤，或列被移除。",
    ),
    signature(
        "modified-in-place",
        r"one of the variables needed for gradient computation has been modified by an inplace operation",
        raised_only=True,
        en="A tensor that backward still needs was changed in place (+=, relu_, an indexed assignment, an optimizer "
        "step between forward and backward). torch.autograd.set_detect_anomaly(True) shows the forward line. With "
        "DistributedDataParallel a second forward before backward changes buffers too: broadcast_buffers=False.",
        zh="backward 仍需要的张量被就地修改（+=、relu_、索引赋值，或在前向与反向之间执行了优化器步骤）。"
        "torch.autograd.set_detect_anomaly(True) 会显示对应的前向行。使用 DistributedDataParallel 时，"
        "backward 之前的第二次前向也会改变缓冲区：请设置 broadcast_buffers=False。",
    ),
)
