"""What the datasets library refuses: columns, splits, configurations, shards.

The words are those of datasets 5.2.0.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, ordinary

_COLUMN = "data-column"
_NOT_FOUND = "data-not-found"

SIGNATURES: tuple[Signature, ...] = (
    ordinary(
        _COLUMN,
        r"(?:Original column name|Column name|Input column|Column to remove|Columns?|Original column names) "
        r"(?P<name>\[[^\]]*\]|\S+) (?:not in|not found in) (?:the |)(?:dataset|table columns)"
        r"(?:[^\n]*?(?P<there>\[[^\]\n]*\]))?",
        en="The data set has no column {name}[[; it has {there}]].",
        zh="数据集中没有列 {name}[[；现有 {there}]]。",
    ),
    ordinary(
        _COLUMN,
        r"Invalid key: (?P<key>[^\n]{1,80}?)\. Please first select a split\. For example: [^\n]*Available splits: "
        r"(?P<splits>\[[^\]]*\])",
        en="A whole data set with several splits is indexed like one of them: select a split first, one of {splits}.",
        zh="把含有多个划分的数据集当作其中一个来索引：请先选择一个划分：{splits}。",
    ),
    ordinary(
        "data-format",
        r"Couldn't cast array of type (?P<one>[^\n]{1,120}?) to (?P<two>[^\n]{1,120})$",
        en="A column holds {one} where the data set has {two}: some files have other types than the first ones, or "
        "the features that were given do not fit.",
        zh="某列为 {one}，而数据集中为 {two}：部分文件的类型与最初的文件不同，或给定的 features 不符。",
    ),
    ordinary(
        "data-format",
        r"Provided `function` which is applied to (?:all elements of table|[^\n]{1,40}?) returns a "
        r"(?:variable of type (?P<type>[^.\n]+)|`dict` of types)",
        en="The function given to map has to return a dict of columns (lists of them with batched=True)[[, and "
        "returns {type}]].",
        zh="传给 map 的函数必须返回由列组成的 dict（batched=True 时为列表）[[，而它返回 {type}]]。",
    ),
    ordinary(
        _NOT_FOUND,
        r"Config name is missing\.|BuilderConfig '(?P<name>[^']+)' not found\. Available: (?P<there>\[[^\]]*\])",
        en="The data set has several configurations, and one of them has to be named[[: there is no {name}, but "
        "{there}]].",
        zh="该数据集有多个配置，需要指定其中之一[[：没有 {name}，而有 {there}]]。",
    ),
    ordinary(
        _NOT_FOUND,
        r"Dataset scripts are no longer supported, but found (?P<script>\S+)",
        en="The data set is made by a Python script ({script}), which datasets 4 and newer do not run: use a copy of "
        "it in Parquet or JSON (many have one in a branch refs/convert/parquet), or datasets below 4.",
        zh="该数据集由 Python 脚本（{script}）生成，datasets 4 及更新版本不再运行它：请使用其 Parquet 或 JSON "
        "副本（许多数据集在 refs/convert/parquet 分支中提供），或使用低于 4 的 datasets。",
    ),
    ordinary(
        _NOT_FOUND,
        r"You are trying to load a dataset that was saved using `save_to_disk`",
        en="This folder was written with save_to_disk: read it with load_from_disk instead of load_dataset.",
        zh="该目录由 save_to_disk 写入：请用 load_from_disk 而不是 load_dataset 读取。",
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
    ordinary(
        "registry",
        # OpenMMLab's mmcv and mmengine, detectron2 (fvcore), PaddleDetection's kin: registries of classes by name.
        r"\AKeyError: [\"']?(?P<name>[\w.-]+) is not in the (?P<registry>[\w:. -]+?) registry",
        en="Nothing is registered as {name} in the {registry} registry: the name in the configuration is misspelt, "
        "the module that defines it is not imported (custom_imports), or it belongs to another version.",
        zh="注册表 {registry} 中没有名为 {name} 的内容：配置中的名称拼写有误、"
        "定义它的模块没有被导入（custom_imports），或它属于其他版本。",
    ),
    ordinary(
        "registry",
        # detectron2 0.1 to 0.6, data/catalog.py.
        r"\AAssertionError: Dataset '(?P<name>[^']+)' is already registered",
        en="The data set {name} is registered twice in one process: the registering code runs at import and again in "
        "main(). Register it once.",
        zh="数据集 {name} 在一个进程中被注册了两次：注册代码在导入时和 main() 中各运行了一次。请只注册一次。",
    ),
    ordinary(
        "missing-file",
        # ultralytics 8, data/utils.py.
        r"Dataset '(?P<name>[^']+)' (?:error[^\n]*?|images )not found[^\n]*?missing paths? '?(?P<path>[^'\n]+)'?",
        en="The images that {name} names are not at {path}: correct the paths in it, or the data sets' folder in the "
        "settings of ultralytics.",
        zh="{name} 所指定的图像不在 {path}：请更正其中的路径，或 ultralytics 设置中的数据集文件夹。",
    ),
    ordinary(
        "empty-data",
        # scikit-learn 0.2x to 1.9, utils/validation.py.
        r"\AValueError: Found array with 0 (?P<what>sample|feature)\(s\)",
        en="scikit-learn gets a table without a single {what}: a filter left nothing, or the file is empty.",
        zh="scikit-learn 得到的表中没有任何 {what}：过滤之后为空，或文件为空。",
    ),
)
