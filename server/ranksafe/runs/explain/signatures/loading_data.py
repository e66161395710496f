"""What a DataLoader, its sampler and its collate function refuse, and files of data that cannot be read.

The words are those of torch 2.13.0 (``torch/utils/data``, torch's collate functions), CPython 3.11, h5py 3, lmdb 1 and
pandas 2.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, ordinary, signature

_ARGUMENTS = "data-loader-arguments"
_COLLATE = "cannot-collate"
_DAMAGED = "damaged-data"

SIGNATURES: tuple[Signature, ...] = (
    ordinary(
        _ARGUMENTS,
        r"(?P<option>sampler|batch_sampler) option is mutually exclusive",
        en="A {option} decides the order itself: leave shuffle (and for a batch_sampler batch_size, sampler and "
        "drop_last) out of the DataLoader's arguments; a DistributedSampler takes shuffle.",
        zh="{option} 自行决定顺序：请在 DataLoader 的参数中去掉 shuffle（使用 batch_sampler 时还有 batch_size、"
        "sampler 和 drop_last）；DistributedSampler 自身接受 shuffle。",
    ),
    signature(
        _ARGUMENTS,
        r"DataLoader with IterableDataset: expected unspecified (?P<option>\w+) option",
        raised_only=True,
        en="An IterableDataset decides its order itself, so the DataLoader takes no {option} for it. Shuffle inside "
        "the data set, and let each rank and each worker read its own share there.",
        zh="IterableDataset 自行决定顺序，因此 DataLoader 不接受 {option}。请在数据集内部打乱顺序，并在其中让每个 "
        "rank 和每个 worker 读取自己的一份。",
    ),
    ordinary(
        _ARGUMENTS,
        r"(?P<option>prefetch_factor|persistent_workers|multiprocessing_context) (?:option )?(?:could only be "
        r"specified in multiprocessing|needs num_workers > 0|can only be used with multi-process loading)",
        en="{option} is about worker processes, and there are none (num_workers=0): leave it out, or use workers.",
        zh="{option} 用于 worker 进程，而此处没有（num_workers=0）：请去掉该参数，或使用 worker。",
    ),
    signature(
        "sampler-rank",
        r"Invalid rank (?P<rank>-?\d+), rank should be in the interval \[0, (?P<last>-?\d+)\]",
        raised_only=True,
        en="The DistributedSampler was given rank {rank}, and its num_replicas leaves room for ranks 0 to {last}. "
        "Leave both out, so that they are taken from the process group, or give the global rank and the world size "
        "(not the local rank, nor the number of GPUs of one machine).",
        zh="DistributedSampler 得到的 rank 为 {rank}，而其 num_replicas 只允许 0 到 {last}。请省略这两个参数，"
        "使其取自进程组；或传入全局 rank 和 world size（而不是 local rank 或单台机器的 GPU 数）。",
    ),
    ordinary(
        _COLLATE,
        r"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        r"<class '(?P<type>NoneType)'>",
        en="A sample, or a part of one, is None, which cannot be put into a batch: __getitem__ returned nothing for "
        "it. Filter such samples in a collate_fn, or mend what makes them.",
        zh="某个样本或其一部分为 None，无法放入批次：__getitem__ 没有返回内容。请在 collate_fn 中过滤这些样本，"
        "或修正产生它们的代码。",
    ),
    ordinary(
        _COLLATE,
        r"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        r"<class '(?P<type>[^']+)'>",
        en="Samples contain a {type}, which the default collate function cannot put into a batch: turn it into a "
        "tensor or a number in the data set (a transform), or write a collate_fn.",
        zh="样本中包含 {type}，默认的 collate 函数无法将其放入批次：请在数据集中将其转换为张量或数字（transform），"
        "或编写 collate_fn。",
    ),
    ordinary(
        _COLLATE,
        r"each element in list of batch should be of equal size",
        en="Samples contain lists of different lengths, which cannot be put into one batch: pad them to one length, "
        "or write a collate_fn.",
        zh="样本中的列表长度不同，无法放入同一批次：请填充到相同长度，或编写 collate_fn。",
    ),
    ordinary(
        _COLLATE,
        r"Batches of (?P<kind>nested|sparse) tensors are not currently supported by the default collate_fn",
        en="The default collate function does not put {kind} tensors into a batch: write a collate_fn.",
        zh="默认的 collate 函数不支持 {kind} 张量：请编写 collate_fn。",
    ),
    ordinary(
        _COLLATE,
        r"Trying to resize storage that is not resizable",
        en="A batch could not be put together in shared memory: mostly samples of different sizes, or tensors that "
        "come from numpy or are views of larger ones. Give all samples one size (or pad them in a collate_fn), and "
        "copy what is a view (.clone()).",
        zh="无法在共享内存中组成批次：多为样本大小不同，或张量来自 numpy、是更大张量的视图。"
        "请让所有样本大小相同（或在 collate_fn 中填充），并复制视图（.clone()）。",
    ),
    ordinary(
        "data-split",
        r"Sum of input lengths does not equal the length of the input dataset!",
        en="random_split needs lengths that add up to the length of the data set, or fractions that add up to 1. "
        "Compute the last length as what is left.",
        zh="random_split 的各长度之和必须等于数据集的长度，或使用和为 1 的比例。请把最后一个长度计算为剩余部分。",
    ),
    ordinary(
        "data-split",
        r"Unknown split \"(?P<split>[^\"]+)\"\. Should be one of (?P<splits>\[[^\]]*\])",
        en="The data set has no split {split}; it has {splits}. Make one with train_test_split, or name one of these.",
        zh="数据集没有 {split} 划分；它有 {splits}。请用 train_test_split 创建，或使用其中之一。",
    ),
    ordinary(
        "data-format",
        r"Couldn't infer the same data file format for all splits",
        en="The files of the data set's splits are of different formats: name the format, or give data_files that "
        "are all of one.",
        zh="数据集各划分的文件格式不同：请指明格式，或提供格式一致的 data_files。",
    ),
    signature(
        "file-race",
        r"unable to lock file, errno = \d+",
        raised_only=True,
        en="HDF5 could not lock the file: another process, often another rank, has it open for writing, or the file "
        "system knows no locks. Let one rank alone write, and open it with mode='r' everywhere else "
        "(HDF5_USE_FILE_LOCKING=FALSE where the file system is the reason).",
        zh="HDF5 无法锁定文件：另一个进程（通常是其他 rank）正以写入方式打开它，或文件系统不支持锁。请只让一个 rank "
        "写入，其他地方以 mode='r' 打开（若原因在文件系统，可设置 HDF5_USE_FILE_LOCKING=FALSE）。",
    ),
    ordinary(
        "data-not-found",
        r"Unable to (?:synchronously )?open object \(object '(?P<name>[^']+)' doesn't exist\)",
        en="The HDF5 file has no {name}.",
        zh="HDF5 文件中没有 {name}。",
    ),
    signature(
        "too-many-readers",
        r"MDB_READERS_FULL",
        raised_only=True,
        en="More processes read this LMDB than it has places for: each rank and each of its DataLoader workers takes "
        "one. Open it with a larger max_readers, or with lock=False where nobody writes.",
        zh="读取该 LMDB 的进程多于其允许的数量：每个 rank 及其每个 DataLoader worker 各占一个。请用更大的 "
        "max_readers 打开，或在无人写入时使用 lock=False。",
    ),
    signature(
        _DAMAGED,
        r"\A(?:\w+\.)*(?:BadZipFile: (?P<zip>[^\n]+)|BadGzipFile: (?P<gzip>[^\n]+)|ReadError: (?:file could not be "
        r"opened "
        r"successfully|not a gzip file|unexpected end of data|bad checksum|empty file|invalid header)|EOFError: "
        r"Compressed file ended before the end-of-stream marker was reached)",
        raised_only=True,
        en="An archive cannot be read[[ ({zip})]][[ ({gzip})]]: it was downloaded or written only in part (another "
        "rank may still be writing it), or it is another format than its name says.",
        zh="无法读取压缩文件[[（{zip}）]][[（{gzip}）]]：下载或写入不完整（其他 rank 可能仍在写入），"
        "或其格式与文件名不符。",
    ),
    signature(
        _DAMAGED,
        r"\A(?:\w+\.)*EmptyDataError: No columns to parse from file",
        raised_only=True,
        en="The table is empty: the file was cut off, is still being written, or holds no data.",
        zh="表格为空：文件被截断、仍在写入，或没有数据。",
    ),
    ordinary(
        _DAMAGED,
        r"\A(?:\w+\.)*ParserError: Error tokenizing data\. C error: Expected (?P<some>\d+) fields in line "
        r"(?P<line>\d+), saw (?P<more>\d+)",
        en="Line {line} of the table has {more} fields, the lines before it {some}: a separator inside a text, "
        "another separator, or damaged data.",
        zh="表格第 {line} 行有 {more} 个字段，而之前各行为 {some} 个：文本中含有分隔符、分隔符不同，或数据损坏。",
    ),
)
