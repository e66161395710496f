"""Settings that the training loops of transformers, accelerate and Lightning refuse.

The words are those of transformers 5.23.0, accelerate 1.15.0 and lightning 2.6.6.
"""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, ordinary

_SETTINGS = "trainer-settings"

SIGNATURES: tuple[Signature, ...] = (
    ordinary(
        _SETTINGS,
        r"The model did not return a loss from the inputs",
        en="The model computed no loss, because its inputs have no labels: name the label column as the model's "
        "forward does (mostly labels), see that the collator keeps it, or give the Trainer a loss.",
        zh="模型没有计算损失，因为输入中没有标签：请让标签列的名称与模型 forward 一致（通常为 labels），确认 "
        "collator 保留了它，或为 Trainer 提供损失函数。",
    ),
    ordinary(
        _SETTINGS,
        r"No columns in the dataset match the model's forward method signature",
        en="None of the data set's columns is an argument of the model's forward, so the Trainer would remove them "
        "all: tokenize the data set first, name the columns as forward does, or set remove_unused_columns=False and "
        "let the collator make the inputs.",
        zh="数据集没有任何一列是模型 forward 的参数，Trainer 会把它们全部移除：请先对数据集分词、让列名与 forward "
        "一致，或设置 remove_unused_columns=False 并由 collator 生成输入。",
    ),
    ordinary(
        _SETTINGS,
        r"evaluation strategy \S+ requires either non-zero --eval_steps or --logging_steps"
        r"|(?P<name>--(?:logging|eval|save)_steps) must be an integer if bigger than 1"
        r"|logging strategy \S+ requires non-zero --logging_steps",
        en="The Trainer's steps for logging, evaluating or saving do not fit its strategy[[ ({name})]]: the message "
        "says which.",
        zh="Trainer 的日志、评估或保存步数与其策略不符[[（{name}）]]：见消息。",
    ),
    ordinary(
        _SETTINGS,
        r"You have set `args\.eval_strategy` to \S+ but you didn't pass an `eval_dataset`"
        r"|Trainer: evaluation requires an eval_dataset",
        en="The Trainer is to evaluate and has no eval_dataset: pass one, or set eval_strategy to no.",
        zh="要求 Trainer 进行评估，但没有 eval_dataset：请传入，或把 eval_strategy 设为 no。",
    ),
    ordinary(
        _SETTINGS,
        r"Trainer: training requires a train_dataset",
        en="The Trainer has no train_dataset: pass one, and see whether it became empty or None before.",
        zh="Trainer 没有 train_dataset：请传入，并检查它是否在之前变成了空或 None。",
    ),
    ordinary(
        _SETTINGS,
        r"[Tt]he train_dataset does not implement __len__, max_steps has to be specified|train_dataset does not "
        r"implement "
        r"__len__",
        en="A streamed data set has no length, so the Trainer cannot count epochs: set max_steps.",
        zh="流式数据集没有长度，Trainer 无法计算 epoch：请设置 max_steps。",
    ),
    ordinary(
        "model-inputs",
        r"You (?:have to specify either|must specify exactly one of) input_ids or inputs_embeds|You should supply an "
        r"encoding or a list of encodings "
        r"to this "
        r"method that includes (?P<name>\w+), but you provided (?P<got>\[[^\]]*\])",
        en="The model or the tokenizer gets no token ids[[ ({name}), but {got}]]: tokenize the data set first, and "
        "see whether the Trainer removed the column (remove_unused_columns) or the batch has other names.",
        zh="模型或分词器没有得到 token id[[（{name}），而是 {got}]]：请先对数据集分词，并检查 Trainer "
        "是否移除了该列（remove_unused_columns），或批次使用了其他名称。",
    ),
    ordinary(
        "model-inputs",
        r"text input must be of type `str`",
        en="The tokenizer gets something that is no text (None, a number, nested lists): look at the column that is "
        "passed to it, and at rows without a text.",
        zh="分词器得到的不是文本（None、数字、嵌套列表）：请检查传给它的列以及没有文本的行。",
    ),
    ordinary(
        "missing-file",
        r"Can't load (?:tokenizer|the configuration|the model|image processor|feature extractor|processor) "
        r"(?:of|for) "
        r"'(?P<name>[^']+)'|Incorrect path_or_model_id: '(?P<path>[^']*)'"
        r"|Unrecognized model in (?P<folder>\S+)\. Should have a `model_type` key",
        en="transformers does not find what it is to load in [[{name}]][[{path}]][[{folder}]]: the path is wrong, a "
        "folder of that name lies in the working directory, or it was saved only in part (save the tokenizer beside "
        "the model).",
        zh="transformers 在 [[{name}]][[{path}]][[{folder}]] 中找不到要加载的内容：路径错误、工作目录中有同名文件夹，"
        "或保存不完整（请把分词器与模型一起保存）。",
    ),
    ordinary(
        _SETTINGS,
        r"The `metric_for_best_model` training argument is set to '(?P<name>[^']+)', which is not found in the "
        r"evaluation "
        r"metrics\. The available evaluation metrics are: (?P<there>\[[^\]]*\])",
        en="metric_for_best_model is {name}, which the evaluation does not give; there are {there}. Name one of "
        "these, or let compute_metrics return it.",
        zh="metric_for_best_model 为 {name}，而评估结果中没有该指标；现有 {there}。请使用其中之一，或让 "
        "compute_metrics 返回它。",
    ),
    ordinary(
        _SETTINGS,
        r"At most one of fp16 and bf16 can be True",
        en="Both fp16 and bf16 are asked for: choose one (bf16 where the GPU has it).",
        zh="同时要求 fp16 和 bf16：请选择其一（GPU 支持时选 bf16）。",
    ),
    ordinary(
        _SETTINGS,
        r"You cannot perform fine-tuning on purely quantized models",
        en="The weights of a quantised model cannot be trained: attach trainable adapters (peft) to it first.",
        zh="量化模型的权重无法训练：请先为其附加可训练的适配器（peft）。",
    ),
    ordinary(
        _SETTINGS,
        r"Target modules [{\[]?(?P<names>.{1,200}?)[}\]]? not found in the base model",
        en="The model has no layers named {names}, which LoRA is to adapt: other architectures have other names "
        '(print the model, or use target_modules="all-linear").',
        zh="模型中没有名为 {names} 的层供 LoRA 适配：不同架构的名称不同（请打印模型，或使用 "
        'target_modules="all-linear"）。',
    ),
    ordinary(
        _SETTINGS,
        # peft 0.21.2, peft/tuners/tuners_utils.py.
        r"No modules were targeted for adaptation|No `target_modules` passed but also no `target_parameters` found",
        en="LoRA found no layer to adapt: none of the target_modules is a layer of this model. Other architectures "
        'have other names (print the model, or use target_modules="all-linear").',
        zh="LoRA 找不到可适配的层：target_modules 中没有一个是该模型的层。不同架构的名称不同（请打印模型，或使用 "
        'target_modules="all-linear"）。',
    ),
    ordinary(
        _SETTINGS,
        r"Can't find a valid checkpoint at (?P<path>\S+)|No valid checkpoint found in output directory "
        r"\((?P<folder>[^)]+)\)",
        en="There is no checkpoint to resume from[[ at {path}]][[ in {folder}]]: mend the path, or start without "
        "resume_from_checkpoint.",
        zh="没有可恢复的检查点[[：{path}]][[：{folder}]]。请更正路径，或不使用 resume_from_checkpoint。",
    ),
    ordinary(
        "quantized-in-distributed-training",
        # The words of accelerate 1.15.0 and, without "or 4-bit", of 0.19.
        r"You can't train a model that has been loaded in 8-bit (?:or 4-bit )?precision on multiple devices in any "
        r"distributed mode",
        plain=False,
        en="A quantised model is spread over several GPUs by its device_map, and several processes train it. Load it "
        'whole on each process\'s own GPU: device_map={{"": local_rank}}.',
        zh="量化模型被 device_map 分布到多个 GPU，而又由多个进程训练。请在每个进程自己的 GPU 上完整加载："
        'device_map={{"": local_rank}}。',
    ),
    ordinary(
        "device-map",
        r"Some modules are dispatched on the CPU or the disk|You are trying to offload the whole model to the disk"
        r"|You can't move a model that has some modules offloaded to cpu or disk",
        plain=False,
        en="The model does not fit on the GPUs that this process sees, so parts of it went to the CPU or the disk. "
        "See who else uses these GPUs, load a smaller or quantised model, or show the process more GPUs.",
        zh="模型无法完全放入该进程可见的 GPU，其一部分被放到 CPU 或磁盘。请查看还有谁在使用这些 GPU，"
        "加载更小或量化的模型，或让进程看到更多 GPU。",
    ),
    ordinary(
        "cuda-out-of-memory",
        # accelerate/utils/memory.py, find_executable_batch_size.
        r"No executable batch size found, reached zero",
        plain=False,
        en="find_executable_batch_size halved the batch size until nothing was left: even one sample does not fit, "
        "or the error that it took for a lack of memory is another one (printed above, if at all). Each rank "
        "searches on its own, so ranks may also end up with different batch sizes.",
        zh="find_executable_batch_size 不断减半批大小直到为零：一个样本也放不下，"
        "或被当作内存不足的其实是其他错误（若有，见上方输出）。每个 rank 各自搜索，因此各 rank 的批大小也可能不同。",
    ),
    ordinary(
        "deepspeed-settings",
        r"Please correct the following DeepSpeed config values that mismatch",
        plain=False,
        en="The DeepSpeed configuration and the training arguments name different values (listed in the message): "
        'set those of the configuration to "auto".',
        zh='DeepSpeed 配置与训练参数给出了不同的值（列于消息中）：请把配置中的这些值设为 "auto"。',
    ),
    ordinary(
        "collective-shape-mismatch",
        # accelerate/utils/operations.py, with ACCELERATE_DEBUG_MODE=1.
        r"Cannot apply desired operation due to shape mismatches\. All shapes across devices must be valid",
        plain=False,
        en="The ranks give tensors of different shapes to one operation (the message lists them by process): pad "
        "them first with accelerator.pad_across_processes, or use gather_for_metrics for the last batch.",
        zh="各 rank 传给同一操作的张量形状不同（消息按进程列出）：请先用 accelerator.pad_across_processes 填充，"
        "最后一个批次可使用 gather_for_metrics。",
    ),
    ordinary(
        "batch-not-divisible",
        r"in `split_batches` mode, the batch size \((?P<size>\d+)\) needs to be a round multiple of the number of "
        r"processes \((?P<ranks>\d+)\)",
        plain=False,
        en="With split_batches a batch of {size} is divided among {ranks} ranks, which does not come out even: use a "
        "multiple of {ranks}.",
        zh="使用 split_batches 时，大小为 {size} 的批次要分给 {ranks} 个 rank，无法整除：请使用 {ranks} 的整数倍。",
    ),
    ordinary(
        _SETTINGS,
        r"`Trainer\(devices=(?P<devices>[^)]+)\)` value is not a valid input using (?P<accelerator>\w+) accelerator",
        plain=False,
        en="Lightning cannot use devices={devices} with the {accelerator} accelerator: fewer are there, or the value "
        "is of another form.",
        zh="Lightning 无法在 {accelerator} 上使用 devices={devices}：设备不足，或值的形式不对。",
    ),
    ordinary(
        _SETTINGS,
        r"Early stopping conditioned on metric `(?P<name>[^`]+)` which is not available[^\n]*?(?:following[^:\n]*: "
        r"(?P<names>[^\n]+))?$",
        en="EarlyStopping watches {name}, which nothing has logged when it looks[[; there are {names}]]: log it "
        "under exactly this name in the hook that EarlyStopping follows (validation, mostly).",
        zh="EarlyStopping 监视 {name}，而它查看时没有任何地方记录过该指标[[；现有 {names}]]：请在 EarlyStopping "
        "所跟随的钩子（通常是验证）中以完全相同的名称记录。",
    ),
    ordinary(
        _SETTINGS,
        r"ModelCheckpoint\(monitor='?(?P<name>[^')]+)'?\)`? could not find the monitored key in the returned metrics"
        r"(?:: (?P<names>\[[^\]]*\]))?",
        en="ModelCheckpoint watches {name}, which nothing has logged[[; there are {names}]]: log it under exactly this "
        "name, or watch one of these.",
        zh="ModelCheckpoint 监视 {name}，而没有任何地方记录过该指标[[；现有 {names}]]：请以完全相同的名称记录，"
        "或监视其中之一。",
    ),
    ordinary(
        _SETTINGS,
        # lightning/pytorch/loops/training_epoch_loop.py.
        r"ReduceLROnPlateau conditioned on metric (?P<name>\S+) which is not available\. Available metrics are: "
        r"(?P<names>\[[^\]]*\])",
        en="ReduceLROnPlateau watches {name}, which nothing has logged; there are {names}: log it under exactly this "
        "name, or watch one of these.",
        zh="ReduceLROnPlateau 监视 {name}，而没有任何地方记录过该指标；现有 {names}：请以完全相同的名称记录，"
        "或监视其中之一。",
    ),
    ordinary(
        _SETTINGS,
        r"\A(?:\w+\.)*MisconfigurationException: (?P<why>[^\n]+)",
        en='Lightning refuses this combination of settings: "{why}".',
        zh="Lightning 不接受这种设置组合：“{why}”。",
    ),
    ordinary(
        _SETTINGS,
        # accelerate 0.20 to 1.15, state.py.
        r"\AValueError: AcceleratorState has already been initialized and cannot be changed[^\n]*?`(?P<flag>[^`]+)`",
        en="An Accelerator was made before with other settings than this one ({flag}), perhaps by TrainingArguments "
        "or in a cell that ran before. Make one Accelerator for the whole program.",
        zh="此前已用不同的设置（{flag}）创建过 Accelerator，可能是由 TrainingArguments 或先前运行的单元格创建的。"
        "整个程序只创建一个 Accelerator。",
    ),
    ordinary(
        _SETTINGS,
        # accelerate 0.20 to 1.15, state.py: the state is emptied by AcceleratorState._reset_state().
        r"\AAttributeError: .?(?P<state>AcceleratorState|PartialState).? object has no attribute",
        en="{state} is asked before an Accelerator (or PartialState) was made in this process, or after it was reset: "
        "make one first, and do not mix versions of accelerate and transformers.",
        zh="在该进程创建 Accelerator（或 PartialState）之前、或其被重置之后访问了 {state}：请先创建，"
        "且不要混用不匹配的 accelerate 与 transformers 版本。",
    ),
    ordinary(
        "launch-mismatch",
        # Lightning 1.8 to 2.6, fabric/plugins/environments/slurm.py.
        r"\AValueError: You set `(?P<asked>[^`]+)` in Lightning, but [^\n]*?(?P<given>--[\w-]+=\d+)",
        plain=False,
        en="The Trainer is told {asked}, and the Slurm job has {given}: the two must agree, one task per GPU on every "
        "node (srun starts the ranks).",
        zh="Trainer 设置为 {asked}，而 Slurm 作业为 {given}：两者必须一致，每个节点上每个 GPU 一个任务（由 srun 启动各 "
        "rank）。",
    ),
    ordinary(
        "fork-after-cuda",
        # Lightning 1.8 to 2.6, fabric/strategies/launchers/multiprocessing.py.
        r"Lightning can't create new processes if CUDA is already initialized",
        plain=False,
        en="Something touched CUDA before the Trainer started its processes by fork (ddp_notebook): move every "
        "torch.cuda call and .cuda() into the model or after fit(), restart the kernel, or start a script instead of "
        "a notebook.",
        zh="在 Trainer 以 fork 方式启动进程（ddp_notebook）之前已经使用了 CUDA：请把 torch.cuda 调用和 .cuda() 移到模型"
        "内部或 fit() 之后，重启内核，或改用脚本而不是 notebook。",
    ),
    ordinary(
        _SETTINGS,
        # peft 0.3 to 0.19, tuners/tuners_utils.py and mapping tables by model type.
        r"\AValueError: Please specify `target_modules`",
        en="peft knows no default target_modules for this model's type: name the layers that LoRA is to adapt, or use "
        'target_modules="all-linear".',
        zh='peft 没有此类模型的默认 target_modules：请指定 LoRA 要适配的层，或使用 target_modules="all-linear"。',
    ),
)
