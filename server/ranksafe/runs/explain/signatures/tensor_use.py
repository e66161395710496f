"""What tensors cannot be used as, and values that an operation does not take; the same on one GPU.

The words are those of torch 2.13.0 and scikit-learn 1.9.1.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, ordinary, signature

_USE = "tensor-misused"
_SHAPE = "shape-mismatch"
_DTYPE = "dtype-mismatch"

SIGNATURES: tuple[Signature, ...] = (
    ordinary(
        _USE,
        r"Boolean value of Tensor with more than one value is ambiguous",
        en="A whole tensor is used as a condition (if, and, or, not, in): say what is meant with .any(), .all() or a "
        "comparison of one element. A tensor in a list that is searched or compared does it too.",
        zh="把整个张量用作条件（if、and、or、not、in）：请用 .any()、.all() 或单个元素的比较说明含义。"
        "在列表中查找或比较张量也会如此。",
    ),
    ordinary(
        _USE,
        r"a Tensor with (?P<count>\d+) elements cannot be converted to Scalar"
        r"|only one element tensors can be converted to Python scalars"
        r"|only length-1 arrays can be converted to Python scalars"
        r"|only integer tensors of a single element can be converted to an index",
        en="A single number is needed, and the tensor does not have exactly one element[[ but {count}]]: reduce it "
        "first (.mean(), .sum()), or take one element.",
        zh="此处需要单个数值，而张量并非恰好有一个元素[[（有 {count} 个）]]：请先归约（.mean()、.sum()），"
        "或取其中一个元素。",
    ),
    ordinary(
        _USE,
        r"iteration over a 0-d tensor|invalid index of a 0-dim tensor|len\(\) of a 0-d tensor",
        en="The tensor is a single number without a dimension: use .item(), or keep a dimension (keepdim=True, "
        "unsqueeze(0)). A squeeze() of a batch of one sample makes such tensors.",
        zh="该张量是没有维度的单个数值：请用 .item()，或保留一个维度（keepdim=True、unsqueeze(0)）。"
        "对只有一个样本的批次使用 squeeze() 会产生这种张量。",
    ),
    ordinary(
        _SHAPE,
        r"Dimension out of range \(expected to be in range of \[(?P<low>-?\d+), (?P<high>-?\d+)\], but got "
        r"(?P<got>-?\d+)\)",
        en="Dimension {got} is asked of a tensor whose dimensions go from {low} to {high}: it has fewer dimensions "
        "than this line expects (a squeeze() of a batch of one sample takes one away).",
        zh="请求第 {got} 维，而该张量的维度范围是 {low} 到 {high}：其维数少于该行所预期的（对只有一个样本的批次使用 "
        "squeeze() 会去掉一维）。",
    ),
    ordinary(
        _SHAPE,
        r"too many indices for (?:tensor of dimension (?P<dimension>\d+)|array: array is (?P<array>\d+)-dimensional)",
        en="More indices are given than the tensor has dimensions[[ ({dimension})]][[ ({array})]]. A tensor made of "
        "an empty list (an image without boxes), or squeezed, has fewer than the others.",
        zh="索引的个数多于张量的维数[[（{dimension}）]][[（{array}）]]。由空列表（例如没有框的图像）创建的张量，"
        "或经过 squeeze 的张量，维数会更少。",
    ),
    ordinary(
        _SHAPE,
        r"requested array has an inhomogeneous shape(?: after \d+ dimensions?)?(?:\. The detected shape was "
        r"(?P<shape>\([\d, ]*\)) \+ inhomogeneous part)?",
        en="Arrays of different shapes are to become one[[: {shape} is all that they share]]. Rows differ in length "
        "(pad them), or a tuple of several outputs is taken for one (the predictions of a Trainer's evaluation are a "
        "tuple where the model returns more than logits: take the first).",
        zh="要把形状不同的数组合成一个[[：共同的部分只有 {shape}]]。各行长度不同（请填充），"
        "或把由多个输出组成的元组当作一个数组（若模型返回的不只是 logits，Trainer 评估的预测就是元组：请取第一个）。",
    ),
    ordinary(
        _SHAPE,
        r"Expected (?P<unbatched>\d)D \(unbatched\) or (?P<batched>\d)D \(batched\) input to (?P<layer>\w+), but got "
        r"input of size: (?P<size>\[[\d, ]*\])",
        en="{layer} takes input of {batched} dimensions (batch first), or {unbatched} without a batch, and gets "
        "{size}.",
        zh="{layer} 需要 {batched} 维输入（第一维为批次），或不带批次的 {unbatched} 维，而得到 {size}。",
    ),
    ordinary(
        _SHAPE,
        r"Expected (?P<needs>\d+)-dimensional input for \d+-dimensional weight (?P<weight>\[[\d, ]*\]), but got "
        r"(?P<got>\d+)-dimensional input of size (?P<size>\[[\d, ]*\])"
        r"|expected (?P<wanted>\dD(?: or \dD)?) input \(got (?P<given>\d)D input\)",
        en="The layer's input lacks a batch or channel dimension, or has one too many[[: it takes {needs} dimensions "
        "and gets {size}]][[: it takes {wanted} input and gets {given}D]].",
        zh="该层的输入缺少或多出批次或通道维[[：需要 {needs} 维，而得到 {size}]][[：需要 {wanted} 输入，而得到 "
        "{given}D]]。",
    ),
    ordinary(
        _SHAPE,
        r"(?:running_mean|running_var|weight|bias) should contain (?P<some>\d+) elements not (?P<layer>\d+)"
        r"|expected input's size at dim=\d+ to match num_features \((?P<features>\d+)\), but got: (?P<got>\d+)"
        r"|Given normalized_shape=(?P<shape>\[[\d, ]+\]), expected input with shape \[[\d, *]+\], but got input of "
        r"size ?(?P<size>\[[\d, ]+\])",
        en="A normalisation layer gets another number of channels than it was made for[[: {some} instead of "
        "{layer}]][[: {got} instead of {features}]].",
        zh="归一化层得到的通道数与其创建时不同[[：{some}，而不是 {layer}]][[：{got}，而不是 {features}]][[：{size}，"
        "而创建时为 {shape}]]。",
    ),
    ordinary(
        _SHAPE,
        r"Calculated padded input size per channel: \((?P<input>[\dx ]+)\)\. Kernel size: \((?P<kernel>[\dx ]+)\)\. "
        r"Kernel size can't be greater than actual input size"
        r"|Given input size: \((?P<given>[\dx]+)\)\. Calculated output size: \((?P<output>[\dx-]+)\)\. Output size is "
        r"too small",
        en="The input has become too small for this layer[[: {input} under a kernel of {kernel}]][[: from {given} it "
        "makes {output}]]. The image or sequence is smaller than the network was made for.",
        zh="输入对该层来说过小[[：{input}，而卷积核为 {kernel}]][[：由 {given} 得到 {output}]]。"
        "图像或序列小于网络的设计尺寸。",
    ),
    ordinary(
        _SHAPE,
        r"(?:embed_dim must be divisible by num_heads"
        r"|embed_dim (?P<size>\d+) not divisible by num_heads (?P<heads>\d+)"
        r"|num_channels \((?P<channels>\d+)\) must be divisible by num_groups \((?P<groups>\d+)\)"
        r"|(?:in|out)_channels must be divisible by groups)",
        en="A layer's size does not divide evenly among its heads or groups[[ ({size} among {heads})]][[ ({channels} "
        "among {groups})]].",
        zh="该层的大小无法在其头或组之间平均划分[[（{size} 分为 {heads}）]][[（{channels} 分为 {groups}）]]。",
    ),
    ordinary(
        _SHAPE,
        r"`lengths` array must be sorted in decreasing order when `enforce_sorted` is True",
        en="Packed sequences have to come longest first: pass enforce_sorted=False, or sort the batch.",
        zh="打包序列时需按长度从长到短排列：请传入 enforce_sorted=False，或对批次排序。",
    ),
    ordinary(
        "empty-sequence",
        r"Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0",
        en="A sequence in the batch has the length 0, which cannot be packed: filter such samples, or give them one "
        "padding step.",
        zh="批次中有长度为 0 的序列，无法打包：请过滤这些样本，或给它们一个填充步。",
    ),
    ordinary(
        "value-out-of-range",
        r"all elements of (?P<what>input|target) should be between 0 and 1",
        en="Binary cross entropy gets {what} values outside of 0 to 1, or NaN: use BCEWithLogitsLoss for raw "
        "outputs, look at the labels, and see whether the model's output has become NaN.",
        zh="二元交叉熵得到的 {what} 超出 0 到 1，或为 NaN：对原始输出请用 BCEWithLogitsLoss，检查标签，"
        "并确认模型输出没有变成 NaN。",
    ),
    ordinary(
        "not-finite",
        r"normal expects all elements of std >= 0\.0",
        en="A normal distribution was given a standard deviation that is negative or NaN: bound it (softplus, exp of a "
        "clamped value), and look where the model's output became NaN.",
        zh="正态分布的标准差为负或 NaN：请限制其范围（softplus、对截断后的值取 exp），并查明模型输出何处变成了 NaN。",
    ),
    ordinary(
        "not-finite",
        r"invalid multinomial distribution \((?P<why>[^)]+)\)",
        en="These are no probabilities to draw from ({why}): all of them are 0 or masked, one is negative, or the "
        "model's output has become NaN or infinite.",
        zh="这些值不能作为采样概率（{why}）：全部为 0 或被屏蔽、出现负值，或模型输出变成了 NaN 或无穷大。",
    ),
    ordinary(
        "not-finite",
        r"The factorization could not be completed because the input is not positive-definite",
        en="The matrix is not positive definite: values went wrong before (NaN, half precision), or it needs a small "
        "number added to its diagonal.",
        zh="矩阵不是正定的：此前的数值已出错（NaN、半精度），或需要在对角线上加一个小的数。",
    ),
    ordinary(
        _DTYPE,
        r"result type (?P<one>\w+) can't be cast to the desired output type (?P<two>\w+)",
        en="A {one} result is to be stored in a {two} tensor: convert it, or keep the result in a new tensor instead "
        "of changing the old one in place.",
        zh="要把 {one} 类型的结果存入 {two} 张量：请转换类型，或把结果放入新张量而不是就地修改。",
    ),
    ordinary(
        _DTYPE,
        r"[Oo]nly Tensors of floating point (?:and complex )?dtype can require gradients",
        en="A tensor of integers cannot have a gradient: make it a float first, or do not ask for one.",
        zh="整数张量不能有梯度：请先转换为浮点，或不要求梯度。",
    ),
    ordinary(
        _DTYPE,
        r"(?:scatter|scatter_add|gather|index_add|index_copy)_?\(\): Expected (?:self\.dtype to be equal to src\.dtype"
        r"|dtype int(?:32/int)?64 for index)|masked_scatter: expected self and source to have same dtypes"
        r"|Index put requires the source and destination dtypes match",
        en="Values of one type are written into a tensor of another one, as happens under autocast: convert the "
        "source to the destination's type.",
        zh="把一种类型的值写入另一种类型的张量，autocast 下会出现这种情况：请把来源转换为目标的类型。",
    ),
    ordinary(
        _DTYPE,
        r"Expected tensor for argument #(?P<number>\d+) '(?P<name>\w+)' to have one of the following scalar types: "
        r"(?P<types>[\w, ]+); but got (?P<got>[\w.]+)",
        en="{name} has to be of the type {types}, and is {got}: an embedding takes integers (.long()).",
        zh="{name} 的类型必须是 {types}，而得到 {got}：嵌入层需要整数（.long()）。",
    ),
    ordinary(
        _DTYPE,
        r"At least one stride in the given numpy array is negative",
        en="A numpy array that was flipped ([::-1], np.flip) cannot become a tensor: copy it first (.copy()).",
        zh="翻转过的 numpy 数组（[::-1]、np.flip）无法转换为张量：请先复制（.copy()）。",
    ),
    ordinary(
        "generator-device",
        r"Expected a '(?P<wanted>\w+)' device type for generator but found '(?P<found>\w+)'",
        en="Random numbers on {wanted} need a generator made there, and this one is on {found}: "
        "torch.Generator(device=...). A default device that was set for all tensors also does this to a DataLoader's "
        "shuffling.",
        zh="在 {wanted} 上生成随机数需要在该设备上创建的 generator，而此处的在 {found} 上："
        "torch.Generator(device=...)。为所有张量设置默认设备也会影响 DataLoader 的打乱。",
    ),
    ordinary(
        "device-mismatch",
        r"cannot pin '(?P<type>[\w.]+)' only dense CPU tensors can be pinned",
        en="pin_memory is for tensors on the CPU, and the data set returns {type}: let it return CPU tensors and "
        "move them in the training loop, or leave pin_memory off.",
        zh="pin_memory 用于 CPU 张量，而数据集返回 {type}：请返回 CPU 张量并在训练循环中移动，或关闭 pin_memory。",
    ),
    signature(
        "metric-input",
        r"Found input variables with inconsistent numbers of samples: (?P<counts>\[[\d, ]+\])",
        raised_only=True,
        en="Labels and predictions do not have the same number of samples: {counts}. Where several ranks evaluate, "
        "gather both the same way.",
        zh="标签与预测的样本数不同：{counts}。若由多个 rank 评估，请以同样的方式汇集两者。",
    ),
    ordinary(
        "metric-input",
        r"Classification metrics can't handle a mix of multilabel-indicator and (?P<two>binary|multiclass) targets",
        en="Each sample has several labels (rows of 0 and 1), and the predictions are one class each ({two}): use a "
        "threshold for every label instead of argmax ((scores > 0.5).astype(int) of the sigmoid), or labels of one "
        "class.",
        zh="每个样本有多个标签（由 0 和 1 组成的行），而预测是单个类别（{two}）：请对每个标签使用阈值而不是 "
        "argmax（对 sigmoid 的结果取 (scores > 0.5).astype(int)），或改用单一类别的标签。",
    ),
    ordinary(
        "metric-input",
        r"Classification metrics can't handle a mix of (?P<one>[\w-]+) and (?P<two>[\w-]+) targets",
        en="The metric gets {one} labels and {two} predictions: turn scores into classes (argmax, a threshold) first.",
        zh="该指标得到 {one} 类型的标签和 {two} 类型的预测：请先把分数转换为类别（argmax、阈值）。",
    ),
    ordinary(
        "shape-mismatch",
        # torch 1.x to 2.13, aten/src/ATen/native/ReflectionPad.cpp; torch.stft pads by half of n_fft (center=True).
        r"Padding size should be less than the corresponding input dimension, but got: padding \((?P<pad>[\d, ]+)\) at "
        r"dimension (?P<at>\d+) of input \[(?P<shape>[\d, ]+)\]",
        en="Reflection padding of {pad} does not fit an input of shape [{shape}], whose dimension {at} is too short: "
        "a signal shorter than the window (torch.stft pads by half of n_fft), or data in another form than expected, "
        "such as two channels last where one is expected.",
        zh="反射填充 {pad} 不适合形状为 [{shape}] 的输入，其第 {at} 维太短：信号比窗口短（torch.stft 会填充 n_fft 的"
        "一半），或数据形式与预期不同，例如预期单声道而最后一维是两个声道。",
    ),
)
