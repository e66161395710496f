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
    signature(
        _ARGUMENTS,
        r"DataLoader with IterableDataset: expected unspecified (?P<option>\w+) option",
        raised_only=True,
        en="An IterableDataset decides its order itself, so the DataLoader takes no {option} for it. Shuffle inside "
        "the data set, and let each rank and each worker read its own share there.",
        zh="IterableDataset 自行决定顺序，因此 DataLoader 不接受 {option}。请在数据集内部打乱顺序，并在其中让每个 "
        "rank 和每个 worker 读取自己的一份。",
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
    signature(
        "file-race",
        r"The file lock '(?P<file>[^']+)' could not be acquired",
        raised_only=True,
        en="Another process holds the lock {file}: another rank that takes long with the same cache, or one that "
        "ended without giving it back. If no process uses it any more, delete the file.",
        zh="另一个进程持有锁 {file}：其他 rank 长时间使用同一缓存，或某进程结束时没有释放。若已无进程使用，"
        "请删除该文件。",
    ),
    signature(
        "file-race",
        r"\A(?:\w+\.)*OperationalError: (?:\(sqlite3\.OperationalError\) )?database is locked",
        raised_only=True,
        en="Several processes write to one SQLite data base at the same time (a tracker's, a study's, a cache). Let "
        "one rank alone write, give each rank a file of its own, or use a data base server.",
        zh="多个进程同时写入同一个 SQLite 数据库（跟踪器、超参搜索或缓存）。请只让一个 rank 写入、"
        "为每个 rank 使用单独的文件，或改用数据库服务器。",
    ),
    ordinary(
        "fewer-shards-than-ranks",
        r"(?:Cannot split an iterable dataset with num_shards=(?P<shards>\d+) across world_size=(?P<ranks>\d+) nodes"
        r"|the dataset now has num_shards=(?P<now>\d+), which is lower than world_size=(?P<size>\d+)"
        r"|Unable to shard a dataset of size (?P<samples>\d+) into (?P<pieces>\d+) shards)",
        plain=False,
        en="There is less to hand out than ranks that want some[[: {shards} shards for {ranks} ranks]][[: {now} "
        "shards for {size} ranks]][[: {samples} samples for {pieces} shards]]. Write the data in more files, or "
        "split it by samples.",
        zh="可分配的份数少于 rank 数[[：{shards} 个分片，{ranks} 个 rank]][[：{now} 个分片，{size} 个 rank]][[："
        "{samples} 个样本，{pieces} 个分片]]。请把数据写成更多文件，或按样本划分。",
    ),
    signature(
        "unreadable-file",
        # pickle and torch.load of an empty or a short file; speechbrain/speechbrain#2321.
        r"EOFError: Ran out of input|unexpected EOF, expected \d+ more bytes",
        raised_only=True,
        en="A file that is loaded here is empty or cut off: a download or save was interrupted, the disk was full, or "
        "another process is still writing it. Where one rank makes or fetches the file, the others must wait for it "
        "(a barrier) before they load it.",
        zh="此处加载的文件为空或不完整：下载或保存被中断、磁盘已满，或另一个进程仍在写入。若文件由某个 rank 生成或"
        "下载，其他 rank 必须等它完成（barrier）之后再加载。",
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
)
