"""Models, checkpoints and data sets that cannot be read, found or loaded. The same on one GPU.

Worded as torch 2.13.0 and transformers 5.23.0 do, and as public logs have it from other packages and versions.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, ordinary, signature

_MISMATCH = "checkpoint-mismatch"
_UNREADABLE = "unreadable-file"
_NOT_FOUND = "model-not-found"

SIGNATURES: tuple[Signature, ...] = (
    ordinary(
        _MISMATCH,
        r"Error\(s\) in loading state_dict for (?P<model>\w+):[\s\S]*?size mismatch for (?P<name>\S+): copying a "
        r"param "
        r"with shape (?P<one>torch\.Size\([^)]*\)) from checkpoint, the shape in current model is "
        r"(?P<two>torch\.Size\([^)]*\))",
        en="The checkpoint is of another {model} than the one built here: {name} is {one} in the checkpoint and {two} "
        "in the model (number of classes, vocabulary, another configuration). Build the model as the checkpoint's was; "
        "or, where only a head or a table is to be new, delete those keys from the checkpoint before loading "
        "(strict=False lets keys be missing, not sizes differ).",
        zh="该检查点属于与此处构建的不同的 {model}：{name} 在检查点中为 {one}，在模型中为 {two}（类别数、"
        "词表或其他配置不同）。请按检查点的配置构建模型；若只有输出头或某个表要换新，请在加载前从检查点中删除这些键"
        "（strict=False 只允许缺少键，不允许大小不同）。",
    ),
    ordinary(
        _MISMATCH,
        r"Error\(s\) in loading state_dict for (?P<model>\w+):\s*(?:(?P<what>Missing|Unexpected) key\(s\) in "
        r"state_dict: (?P<first>\"[^\"]+\"))?",
        en="The checkpoint does not fit this {model}[[ ({what} keys, the first: {first})]]: it is of another "
        "version or "
        "configuration of the model, or its keys carry a prefix.",
        zh="检查点与该 {model} 不匹配[[（{what} 键，第一个：{first}）]]：它属于模型的其他版本或配置，或键带有前缀。",
    ),
    ordinary(
        _MISMATCH,
        r"loaded state dict (?:has a different number of parameter groups"
        r"|contains a parameter group that doesn't match the size of optimizer's group)",
        en="The saved optimizer state belongs to a model with other parameters than this one: other layers are "
        "frozen, "
        "or the model has changed.",
        zh="保存的优化器状态属于参数不同的模型：冻结的层不同，或模型已改变。",
    ),
    signature(
        _UNREADABLE,
        # pickle and torch.load of an empty or a short file; speechbrain/speechbrain#2321.
        r"EOFError: Ran out of input|unexpected EOF, expected \d+ more bytes",
        raised_only=True,
        en="A file that is loaded here is empty or cut off: a download or save was interrupted, the disk was full, or "
        "another process is still writing it. Where one rank makes or fetches the file, the others must wait for it "
        "(a barrier) before they load it.",
        zh="此处加载的文件为空或不完整：下载或保存被中断、磁盘已满，或另一个进程仍在写入。若文件由某个 rank 生成或"
        "下载，其他 rank 必须等它完成（barrier）之后再加载。",
    ),
    ordinary(
        _UNREADABLE,
        r"Error while deserializing header: (?P<why>\w+)|invalid load key, '(?P<key>[^']*)'"
        r"|PytorchStreamReader failed (?:reading zip archive|finding central directory|locating file)[^\n]*"
        r"|Unable to (?:synchronously )?open "
        r"file "
        r"\((?:truncated file|file signature not found)|MetadataIncompleteBuffer|HeaderTooLarge",
        en="A file that is loaded here is damaged, cut off or not what its name says[[ ({why})]]: an interrupted "
        "download or save, or a Git LFS pointer instead of the file.",
        zh="此处加载的文件已损坏、不完整，或与文件名不符[[（{why}）]]：下载或保存被中断，或该文件只是 Git LFS 指针。",
    ),
    ordinary(
        _UNREADABLE,
        r"Weights only load failed(?:[\s\S]{0,2000}?Unsupported global: GLOBAL (?P<name>[\w.]+))?",
        en="The file holds more than tensors[[ ({name})]], and torch.load refuses that since torch 2.6 "
        "(weights_only=True "
        "is the default). If the file is trusted, allow its classes (torch.serialization.add_safe_globals) or pass "
        "weights_only=False.",
        zh="该文件包含张量以外的内容[[（{name}）]]，自 torch 2.6 起 torch.load 会拒绝（默认 weights_only=True）。"
        "若信任该文件，请允许其中的类（torch.serialization.add_safe_globals）或传入 weights_only=False。",
    ),
    ordinary(
        _UNREADABLE,
        r"UnidentifiedImageError: cannot identify image file (?P<file>.+)|image file is truncated"
        r"|OSError: broken data stream when reading image file",
        en="An image of the data set cannot be read[[: {file}]]: it is damaged, cut off, or no image.",
        zh="数据集中的图像无法读取[[：{file}]]：已损坏、不完整，或不是图像。",
    ),
    ordinary(
        _UNREADABLE,
        r"LibsndfileError: (?P<why>[^\n]*)|Error opening (?P<file>[^\n]+?): (?:File contains data|Format not "
        r"recognised"
        r"|System error)",
        en="An audio file of the data set cannot be read[[: {file}]].",
        zh="数据集中的音频文件无法读取[[：{file}]]。",
    ),
    ordinary(
        _NOT_FOUND,
        r"(?P<name>\S+) is not a local folder and is not a valid model identifier listed on"
        r"|Repository Not Found for url: (?P<url>\S+?)\.?(?:\s|$)|RepositoryNotFoundError: 404"
        r"|Repo id must (?:be in the form 'repo_name' or 'namespace/repo_name'|use alphanumeric chars)[^\n]*?: "
        r"'(?P<id>[^']*)'",
        en="There is no such model or data set[[: {name}]][[: {id}]][[ ({url})]]: it is neither a folder here nor a "
        "repository that this login may see. Mend the path or the name; a private repository needs a token.",
        zh="没有这样的模型或数据集[[：{name}]][[：{id}]][[（{url}）]]：它既不是本机文件夹，也不是当前登录可见的仓库。"
        "请更正路径或名称；私有仓库需要令牌。",
    ),
    ordinary(
        _NOT_FOUND,
        r"(?P<name>\S+) does not appear to have (?:a file|files?) named (?P<file>[^\s.]+\.\w+"
        r"|\([^)]*\)|[^\n]+?)\.?(?:\s|$)"
        r"|Error no file named (?P<missing>[^\n]+?) found in directory (?P<folder>\S+?)\.?(?:\s|$)",
        en="[[{name} has no {file}]][[{folder} has no {missing}]]: the folder is not a complete model, or it is "
        "another "
        "one than meant.",
        zh="[[{name} 中没有 {file}]][[{folder} 中没有 {missing}]]：该文件夹不是完整的模型，或并非所指的文件夹。",
    ),
    ordinary(
        "version-requirement",
        r"model type `(?P<type>[^`]+)` but Transformers does not recognize this architecture"
        r"|Unrecognized model in (?P<name>\S+?)\.|KeyError: '(?P<key>[a-z0-9_]+)'(?=\s*\Z)",
        frames=r"transformers/models/auto/",
        en="The installed transformers does not know this kind of model[[ ({type})]][[ ({key})]]: install a newer "
        "version, or look at config.json.",
        zh="已安装的 transformers 不认识该类模型[[（{type}）]][[（{key}）]]：请安装更新的版本，或检查 config.json。",
    ),
    ordinary(
        "untrusted-code",
        r"requires you to execute the (?:configuration|modeling|tokenizer|dataset)[^\n]* (?:file|script|code)[^\n]*"
        r"trust_remote_code|contains custom code which must be executed to correctly load the model",
        en="This model or data set brings code of its own, which is not run unasked: read it, then pass "
        "trust_remote_code=True.",
        zh="该模型或数据集自带代码，不会擅自执行：请先阅读代码，然后传入 trust_remote_code=True。",
    ),
    ordinary(
        "data-not-found",
        r"DatasetNotFoundError: |Couldn't find (?:a dataset script at|file at|any data file at) (?P<path>\S+)"
        r"|EmptyDatasetError|DataFilesNotFoundError: |Unable to find '(?P<file>[^']+)'",
        en="The data set is not found[[: {path}]][[: {file}]]. Mend its name or path; relative paths start at the "
        "working directory.",
        zh="找不到数据集[[：{path}]][[：{file}]]。请更正名称或路径；相对路径从工作目录算起。",
    ),
    ordinary(
        "data-format",
        r"DatasetGenerationError|DatasetGenerationCastError|ArrowInvalid: (?P<why>[^\n]+)|CastError: ",
        en="The data set's files do not all have the columns and types that the first ones have[[ ({why})]].",
        zh="数据集各文件的列和类型并不都与最初的文件一致[[（{why}）]]。",
    ),
    ordinary(
        "tokenizer",
        r"Asking to pad but the tokenizer does not have a padding token",
        en="The tokenizer has no padding token: set tokenizer.pad_token, for example to tokenizer.eos_token.",
        zh="分词器没有填充 token：请设置 tokenizer.pad_token，例如设为 tokenizer.eos_token。",
    ),
    ordinary(
        "tokenizer",
        r"Unable to create tensor, you should probably activate truncation and/or padding[^\n]*features "
        r"\(`labels` in this case\)",
        en="The labels of the samples in one batch have different lengths, and this collator pads only what the "
        "tokenizer makes: use one that pads the labels, too (DataCollatorForTokenClassification, "
        "DataCollatorForSeq2Seq), or pad them with -100 in the data set. Labels that are nested lists or texts do it "
        "as well.",
        zh="同一批次中样本的标签长度不同，而该 collator 只填充分词器产生的列：请使用同时填充标签的 collator"
        "（DataCollatorForTokenClassification、DataCollatorForSeq2Seq），或在数据集中用 -100 填充。"
        "标签为嵌套列表或文本时也会如此。",
    ),
    ordinary(
        "tokenizer",
        r"Unable to create tensor, you should probably activate truncation and/or padding",
        en="Samples of different lengths, or columns that are no numbers, are put into one batch: tokenise with "
        "padding and truncation, and remove the columns that the model does not take.",
        zh="长度不同的样本或非数字列被放入同一批次：请在分词时启用填充和截断，并移除模型不使用的列。",
    ),
    signature(
        "missing-file",
        # torch's UntypedStorage.from_file and torch.load(mmap=True); at::MapAllocator.
        r"unable to open file <(?P<path>[^>]+)> in read-only mode: (?P<why>[^\n(]+?) *\(\d+\)",
        en="A file of the model cannot be opened ({path}: {why}): the cache or the folder is incomplete, a link in it "
        "leads nowhere, or another process removed it. Delete what is left of it and fetch the model again, once, "
        "before the ranks start.",
        zh="无法打开模型的文件（{path}：{why}）：缓存或文件夹不完整、其中的链接失效，或被其他进程删除。"
        "请删除残留内容，并在各 rank 启动之前重新获取一次模型。",
    ),
    ordinary(
        "unknown-model",
        # transformers 4.40 to 5, models/auto/configuration_auto.py.
        r"\AValueError: The checkpoint you are trying to load has model type .(?P<name>[\w.-]+). but Transformers does "
        r"not recognize this architecture",
        en="The installed transformers does not know models of the type {name}: it is older than the model. Upgrade "
        "it, or pass trust_remote_code=True where the model brings its own code and you trust it.",
        zh="已安装的 transformers 不认识类型为 {name} 的模型：它比模型旧。请升级；若模型自带代码且你信任它，"
        "也可传入 trust_remote_code=True。",
    ),
    ordinary(
        "unknown-model",
        # transformers 4.0 to 4.39: the name is looked up in a table without a message of its own.
        r"\AKeyError: '(?P<name>[\w-]+)'",
        frames=r"transformers/models/auto/(?:configuration_auto|auto_factory)\.py:",
        en="The installed transformers does not know models of the type {name}: it is older than the model. Upgrade "
        "it.",
        zh="已安装的 transformers 不认识类型为 {name} 的模型：它比模型旧。请升级。",
    ),
    ordinary(
        "unknown-model",
        # transformers 4.x and 5, models/auto/tokenization_auto.py.
        r"\AValueError: Tokenizer class (?P<name>\w+) does not exist or is not currently imported",
        en="The installed transformers has no tokenizer {name}, which the model's tokenizer_config.json names: it is "
        "of another version than the model was saved with, or an optional package of that tokenizer is missing.",
        zh="已安装的 transformers 中没有模型的 tokenizer_config.json 所指定的分词器 {name}：其版本与保存模型时不同，"
        "或缺少该分词器的可选依赖包。",
    ),
    ordinary(
        "shared-weights",
        # safetensors 0.3 to 0.6, torch.py.
        r"Some tensors share memory, this will lead to duplicate memory on disk",
        en="The model has weights that are one tensor under several names (tied embeddings), and safetensors saves "
        "each only once: save with model.save_pretrained or safetensors.torch.save_model, which know of tied weights, "
        "or with save_safetensors=False.",
        zh="模型中有权重以多个名称共享同一张量（绑定的嵌入），而 safetensors 只保存一份：请用 model.save_pretrained 或 "
        "safetensors.torch.save_model 保存（它们能处理绑定权重），或设置 save_safetensors=False。",
    ),
    ordinary(
        "write-failed",
        # torch 1.6 to 2.13, caffe2/serialize/inline_container.cc and torch/serialization.py.
        r"\ARuntimeError: (?:Parent directory (?P<folder>\S+) does not exist\.|File (?P<file>\S+) cannot be opened\.)",
        en="[[The folder {folder} is not there]][[{file} cannot be opened for writing]]: make the folder before you "
        "save (os.makedirs(…, exist_ok=True)), and see that the process may write there.",
        zh="[[文件夹 {folder} 不存在]][[无法打开 {file} 写入]]：请在保存之前创建文件夹（os.makedirs(…, "
        "exist_ok=True)），并确认进程有写入权限。",
    ),
    ordinary(
        "damaged-data",
        r"\A(?:zlib\.)?error: Error -[35] while decompressing data|\A(?:LZMAError|ZstdError|error: Corrupt)",
        en="Compressed data cannot be unpacked: the file was cut off or damaged, or is still being "
        "written.",
        zh="无法解压数据：文件被截断或损坏，或仍在写入。",
    ),
    ordinary(
        "damaged-data",
        # OpenCV 3 and 4: imread gives None for a file that it cannot read, and the next call complains.
        r"\A(?:cv2\.)?error: OpenCV\([^)]*\)[\s\S]*?error: \(-215:Assertion failed\) !_?\w*\.empty\(\) in function "
        r"'?(?P<call>\w+)",
        en="cv2.{call} was given an image that is empty: cv2.imread returns None for a file that is missing or "
        "damaged, without a word. Check the path and what imread returned.",
        zh="cv2.{call} 得到的图像为空：文件缺失或损坏时 cv2.imread 只返回 None 而不报错。请检查路径和 imread "
        "的返回值。",
    ),
    ordinary(
        "missing-file",
        # lmdb 1.x; the path stands before the operating system's word.
        r"\A(?:lmdb\.)?Error: (?P<path>\S+): (?P<why>No such file or directory|Permission denied|Invalid argument"
        r"|Device or resource busy)",
        en="The database {path} cannot be opened ({why}); relative paths start at the working directory.",
        zh="无法打开数据库 {path}（{why}）；相对路径从工作目录算起。",
    ),
)
