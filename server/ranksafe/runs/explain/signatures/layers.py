"""What layers, losses, attention and image transforms refuse; the same on one GPU.

The words are those of torch 2.13.0 (libtorch, ``torch/nn``), torchvision 0.28 and Pillow 13.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, ordinary, signature

_SHAPE = "shape-mismatch"
_DTYPE = "dtype-mismatch"
_IMAGE = "image-type"

SIGNATURES: tuple[Signature, ...] = (
    ordinary(
        _SHAPE,
        r"Expected hidden(?:\[(?P<at>\d)\])? size \((?P<needs>[\d, ]+)\), got \[(?P<got>[\d, ]+)\]",
        en="The hidden state does not fit the input: it should be ({needs}) and is [{got}]. Make it for each batch "
        "anew, because the last batch may be smaller, and see whether the batch comes first.",
        zh="隐藏状态与输入不匹配：应为 ({needs})，而实际为 [{got}]。请为每个批次重新创建（最后一个批次可能更小），"
        "并确认批次维是否在第一维。",
    ),
    ordinary(
        _SHAPE,
        r"The shape of the (?P<kind>\dD) attn_mask is (?P<got>torch\.Size\([^)]*\)), but should be "
        r"(?P<needs>\([^)]*\))",
        en="The attention mask has the shape {got} and has to be {needs}.",
        zh="注意力掩码的形状为 {got}，而应为 {needs}。",
    ),
    ordinary(
        _SHAPE,
        r"Expected size for first two dimensions of batch2 tensor to be: (?P<needs>\[[\d, ]+\]) but got: "
        r"(?P<got>\[[\d, ]+\])|batch1 and batch2 must have same (?P<what>[\w ]+)",
        en="The two sides of a batched matrix product do not fit[[: {needs} is needed and {got} given]]: both need the "
        "same number of batches, and the last size of the first is the middle one of the second (transpose(1, 2)).",
        zh="批量矩阵乘法的两侧不匹配[[：需要 {needs}，而得到 {got}]]：二者的批次数要相同，"
        "且前者的最后一维等于后者的中间一维（transpose(1, 2)）。",
    ),
    ordinary(
        _SHAPE,
        r"0D or 1D target tensor expected, multi-target not supported"
        r"|only batches of spatial targets supported \(3D tensors\) but got targets of dimension: (?P<got>\d)",
        en="Cross entropy takes class numbers, and the target has a dimension too many[[ ({got})]]: squeeze it, or "
        "turn one-hot targets into class numbers (argmax) or floats.",
        zh="交叉熵需要类别编号，而目标多了一维[[（{got} 维）]]：请 squeeze，或把 one-hot 目标转换为类别编号（argmax）"
        "或浮点数。",
    ),
    ordinary(
        _DTYPE,
        r"Expected floating point type for target with class probabilities, got (?P<got>\w+)",
        en="The target has the shape of class probabilities and holds {got} numbers: give class numbers of one "
        "dimension less, or convert it to float.",
        zh="目标的形状为类别概率，而类型为 {got}：请给出少一维的类别编号，或转换为 float。",
    ),
    ordinary(
        "tensor-misused",
        r"tensors used as indices must be long, int, byte or bool tensors",
        en="A tensor of floats is used as an index: convert it (.long()).",
        zh="用浮点张量作为索引：请转换（.long()）。",
    ),
    ordinary(
        "tensor-misused",
        r"Inference tensors cannot be saved for backward|Inplace update to inference tensor outside InferenceMode"
        r"|Cannot set version_counter for inference tensor",
        en="A tensor that was made under torch.inference_mode() is used in training: clone it first, or make it "
        "under torch.no_grad().",
        zh="在 torch.inference_mode() 下产生的张量被用于训练：请先 clone，或改在 torch.no_grad() 下产生。",
    ),
    ordinary(
        "tensor-misused",
        r"too many dimensions 'str'|new\(\): invalid data type 'str'",
        en="Texts cannot become a tensor: tokenize them, or leave this column out of the batch.",
        zh="文本无法转换为张量：请先分词，或不要把该列放入批次。",
    ),
    ordinary(
        "tensor-misused",
        r"can't convert np\.ndarray of type numpy\.(?P<type>\w+)\. The only supported types are",
        en="A numpy array of the type {type} cannot become a tensor: it holds arrays of different lengths, texts or "
        "None, or a number type that torch does not have.",
        zh="类型为 {type} 的 numpy 数组无法转换为张量：其中含有长度不同的数组、文本或 None，或是 torch "
        "没有的数值类型。",
    ),
    ordinary(
        _SHAPE,
        r"expected sequence of length (?P<one>\d+) at dim (?P<dimension>\d+) \(got (?P<two>\d+)\)",
        en="Lists of different lengths ({one} and {two}) cannot become one tensor: pad them first. Tokenised texts "
        "need padding=True, or a collator that pads (DataCollatorWithPadding; labels need one that pads them, too).",
        zh="长度不同的列表（{one} 与 {two}）无法组成一个张量：请先填充。分词后的文本需要 padding=True，"
        "或使用会填充的 collator（DataCollatorWithPadding；标签需要同时填充标签的 collator）。",
    ),
    signature(
        "cuda-library-error",
        r"(?:FIND|GET) was unable to find an engine to execute this computation"
        r"|Unable to find a valid cuDNN algorithm to run convolution",
        raised_only=True,
        en="cuDNN found no way to compute this layer: mostly the GPU's memory is nearly full, so that nothing is "
        "left for its workspace; else an installation whose cuDNN and CUDA do not fit, or a type that the GPU does "
        "not know.",
        zh="cuDNN 找不到计算该层的方法：多半是 GPU 内存几乎用尽，没有工作空间；否则是 cuDNN 与 CUDA 版本不匹配，或 "
        "GPU 不支持该类型。",
    ),
    ordinary(
        "attention-not-available",
        r"No available kernel\. Aborting execution",
        en="None of the attention kernels that are switched on can do this (type, head size, mask, GPU): allow more "
        "of them (torch.nn.attention.sdpa_kernel), or use half precision for flash attention.",
        zh="已启用的注意力内核都无法完成该计算（类型、head 大小、掩码、GPU）："
        "请允许更多内核（torch.nn.attention.sdpa_kernel），或为 flash attention 使用半精度。",
    ),
    ordinary(
        _IMAGE,
        r"(?P<name>pic|img) should be PIL Image(?: or ndarray)?\. Got <class '(?P<type>[^']+)'>"
        r"|Input tensor should be a float tensor\. Got (?P<tensor>torch\.\w+)",
        en="A transform gets a picture of another kind than it takes[[: {type}]][[: {tensor}]]: the order of the "
        "transforms is wrong (ToTensor before or after), or one of them is missing.",
        zh="transform 得到的图像类型不对[[：{type}]][[：{tensor}]]：transform 的顺序错误（ToTensor 的先后），"
        "或缺少其中之一。",
    ),
    ordinary(
        _IMAGE,
        r"Cannot handle this data type: (?P<what>[^\n]+)|cannot write mode (?P<mode>\w+) as (?P<format>\w+)",
        en="Pillow does not take a picture of this type[[: {what}]][[: {mode} as {format}]]: convert it first "
        "(uint8, or .convert('RGB')).",
        zh="Pillow 不支持这种类型的图像[[：{what}]][[：把 {mode} 存为 {format}]]：请先转换（uint8 或 "
        ".convert('RGB')）。",
    ),
)
