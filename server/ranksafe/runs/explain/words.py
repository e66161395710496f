"""Sentences for what has no signature of its own: deaths, early leavers, unknown failures."""

from __future__ import annotations

from ranksafe.localization import Language, Translated
from ranksafe.runs.model import Failure

UNKNOWN = Translated(
    en="This failure is not one ranksafe knows; the message and the call chain are the rank's own.",
    zh_cn="ranksafe 不认识此故障；消息和调用链均为该 rank 的原始内容。",
)
RAISED_HERE = Translated(
    en="This line raised the {type} itself.", zh_cn="该 {type} 由这一行自身抛出。"
)
ORDINARY = Translated(
    en="It is an ordinary {type}: neither the message nor the line has anything to do with several GPUs, and one GPU "
    "would show it too.",
    zh_cn="这是普通的 {type}：消息和该行都与多 GPU 无关，单 GPU 也会出现。",
)
ONE_GPU_TOO = Translated(en="This has nothing to do with several GPUs.", zh_cn="这与多 GPU 无关。")
ONLY_ONE_RANK = Translated(
    en="Only this one of the run's ranks reported it before the run ended, so it may depend on the rank: its share of "
    "the data, or what only it does.",
    zh_cn="运行结束前只有该 rank 报告了它，因此它可能与 rank 有关：该 rank 分到的数据，或只有它执行的操作。",
)
TIMED_OUT = Translated(
    en="The status 124 in the log is that of timeout(1): the time that it was given ran out. Give it more, or save "
    "checkpoints and resume.",
    zh_cn="日志中的状态 124 是 timeout(1) 的退出码：所给的时间已用完。请延长时间，或保存检查点后继续。",
)
WAIT_FOR_FILE = Translated(
    en="Where another rank makes the file, wait for it (dist.barrier(), accelerator.main_process_first()).",
    zh_cn="如果该文件由另一个 rank 创建，请等待它（dist.barrier()、accelerator.main_process_first()）。",
)
MADE_BY_ANOTHER = Translated(
    en="Only this one of the run's ranks reported it before the run ended: where another rank makes the file, wait for "
    "it (dist.barrier(), accelerator.main_process_first()); where each rank has files of its own, see this one's.",
    zh_cn="运行结束前只有该 rank 报告了它：如果该文件由另一个 rank 创建，请等待它（dist.barrier()、"
    "accelerator.main_process_first()）；如果每个 rank 有各自的文件，请检查该 rank 的文件。",
)
FINISHED_BEFORE = Translated(
    en='Rank {rank} had said before that it was finished ("{text}"): it had fewer batches than the others, or left '
    "early. Every rank needs the same number of steps (DistributedSampler, or the smallest number of all ranks).",
    zh_cn="rank {rank} 此前已表示完成（“{text}”）：其批次少于其他 rank，或提前离开。每个 rank 需要相同的步数"
    "（DistributedSampler，或取所有 rank 的最小值）。",
)
HANDED_ON = Translated(
    en="{code} is how a launcher hands on that a signal, {signal}, had ended a process (SIGKILL: most often for lack "
    "of "
    "memory, look at the kernel's log of that machine).",
    zh_cn="{code} 是启动器转述的退出码，表示某个进程被信号 {signal} 终止（SIGKILL 多半是内存不足，见该机器的内核日志）"
    "。",
)
SOME_RANKS = Translated(
    en="Ranks {ranks} reported it, the others did not before the run ended.",
    zh_cn="rank {ranks} 报告了它，其他 rank 在运行结束前没有。",
)
ANOTHER_RAISED = Translated(
    en="Rank {rank} raised another exception by itself: {text}. Both may have one cause.",
    zh_cn="rank {rank} 自己抛出了另一个异常：{text}。二者可能有同一个原因。",
)
STARVED = Translated(
    en='This exception ended "{where}", a thread or process of the rank, which then waited for it in vain ({type}).',
    zh_cn="该异常终止了该 rank 的线程或进程“{where}”，随后该 rank 一直徒劳地等待它（{type}）。",
)
EVERY_RANK = Translated(
    en="Every rank failed here in the same way, so this is most likely an ordinary error that one GPU would show too.",
    zh_cn="每个 rank 都在此处以相同方式失败，因此这很可能是单 GPU 也会出现的普通错误。",
)
EMPTY_SIZE = Translated(
    en="A size is 0: under DeepSpeed ZeRO-3 and FSDP a weight is empty outside of its own forward, so gather it before "
    "you read or change it (deepspeed.zero.GatheredParameters, FSDP.summon_full_params); without them look for where "
    "the 0 comes from.",
    zh_cn="大小为 0：在 DeepSpeed ZeRO-3 和 FSDP 下，权重在其自身的 forward 之外为空，读取或修改之前请先收集它"
    "（deepspeed.zero.GatheredParameters、FSDP.summon_full_params）；若未使用它们，请查明 0 的来源。",
)
CAUSED_BY = Translated(en="{outer} (caused by {inner})", zh_cn="{outer}（起因：{inner}）")
KILLED = Translated(en="killed by {signal}", zh_cn="被 {signal} 终止")
OF_SIGNAL = {
    "SIGKILL": Translated(
        en="The rank was killed without a chance to say why. Usually the machine ran out of memory (look at the "
        "kernel's log), or somebody or a scheduler killed it.",
        zh_cn="该 rank 被强制终止，来不及说明原因。通常是机器内存不足（请查看内核日志），或被人或调度器终止。",
    ),
    "SIGSEGV": Translated(
        en="Compiled code accessed memory it may not. Suspect packages built for another version of torch; with "
        "PYTHONFAULTHANDLER=1 the Python line is printed.",
        zh_cn="编译代码非法访问了内存。请检查为其他版本 torch 构建的包；设置 PYTHONFAULTHANDLER=1 会打印 Python 行。",
    ),
    "SIGABRT": Translated(
        en="Compiled code ended the rank on purpose; its last lines on standard error say why.",
        zh_cn="编译代码主动终止了该 rank；原因见标准错误的最后几行。",
    ),
    "SIGXCPU": Translated(
        en="The process used up the processor time that it may have (ulimit -t, mostly on login nodes): run where "
        "there is no such limit, or as a job.",
        zh_cn="进程用尽了允许的处理器时间（ulimit -t，多见于登录节点）：请在没有此限制处运行，或作为作业提交。",
    ),
    "SIGXFSZ": Translated(
        en="The process wrote a file beyond the size that it may have (ulimit -f).",
        zh_cn="进程写入的文件超出了允许的大小（ulimit -f）。",
    ),
    "SIGHUP": Translated(
        en="The terminal or the connection that the run was started from was closed: use tmux, nohup, or a job.",
        zh_cn="启动运行的终端或连接已关闭：请使用 tmux、nohup 或作业。",
    ),
    "SIGFPE": Translated(
        en="Compiled code divided a whole number by zero, or the like.",
        zh_cn="编译代码出现整数除以零之类的错误。",
    ),
    "SIGILL": Translated(
        en="Compiled code uses an instruction that this processor does not have: it was built for another one.",
        zh_cn="编译代码使用了本处理器不支持的指令：它是为其他处理器构建的。",
    ),
    "SIGBUS": Translated(
        en="Memory that a file stands behind could not be provided: /dev/shm is full (enlarge it with docker run "
        "--shm-size, or use fewer DataLoader workers), or a memory-mapped file got shorter while it was read, "
        "because another rank or process wrote it anew.",
        zh_cn="由文件支持的内存无法提供：/dev/shm 已满（用 docker run --shm-size 增大，或减少 DataLoader worker 数），"
        "或内存映射的文件在读取期间变短，因为其他 rank 或进程重写了它。",
    ),
}
OTHER_SIGNAL = Translated(en="A signal ended the rank.", zh_cn="该 rank 被信号终止。")
EXITED = Translated(
    en="The rank ended itself with an exit status and without an exception; the other ranks then lost their "
    "connection to it.",
    zh_cn="该 rank 以退出码自行结束，没有抛出异常；其他 rank 随后与它失去连接。",
)
NOTHING_KNOWN_IN_LOG = Translated(
    en="The launcher says that this rank failed; no traceback and no message that is known tells why. The last lines "
    "before it are shown, and more may be in the rank's own standard error (torchrun keeps it with --log-dir and "
    "--redirects 3).",
    zh_cn="启动器报告该 rank 失败；没有 traceback 或已知的消息说明原因。下面显示其之前的最后几行，更多内容可能在该 "
    "rank 自己的标准错误中（torchrun 可用 --log-dir 和 --redirects 3 保存）。",
)
NOT_IN_LOG = Translated(
    en="The launcher says that this rank failed, and this log does not say why: look at the rank's own standard error "
    "(torchrun keeps it with --log-dir and --redirects 3).",
    zh_cn="启动器表示该 rank 失败，但此日志没有说明原因：请查看该 rank 自己的标准错误（torchrun 可用 --log-dir 和 "
    "--redirects 3 保存）。",
)
PRINTED_BEFORE = Translated(
    en='The launcher says that this rank failed; no exception was printed. The last complaint before it is "{line}".',
    zh_cn="启动器表示该 rank 失败，没有打印异常。此前最后的错误输出是：“{line}”。",
)
CUT_OFF = Translated(
    en="The log ends in the middle of this rank's traceback, so what was raised is not in it; the last line shown "
    "is as "
    "far as it goes.",
    zh_cn="日志在该 rank 的 traceback 中间结束，因此不知道抛出了什么；所示最后一行是日志所到之处。",
)
LOST_ARGUMENT = Translated(
    en="The shell took {argument} for a command of its own, so a line of the command ended too early: each line but "
    "the last has to end with a backslash, and nothing may follow it.",
    zh_cn="shell 把 {argument} 当作一条单独的命令，说明命令的某一行过早结束：除最后一行外，每行都要以反斜杠结尾，"
    "其后不能有任何字符。",
)
SLURM_TASK = Translated(
    en="Slurm names task {task} on node {node}.",
    zh_cn="Slurm 指出的是节点 {node} 上的任务 {task}。",
)
APPROXIMATE = Translated(
    en="The line is where it was last seen, at most a second earlier.",
    zh_cn="所示行是它最后一次被观察到的位置，最多早一秒。",
)
LEFT_EARLY_MESSAGE = Translated(
    en="rank {rank} ended while rank {peer} was still waiting for it in a collective",
    zh_cn="rank {rank} 已结束，而 rank {peer} 仍在集合通信中等待它",
)
LEFT_EARLY = Translated(
    en="The ranks made different numbers of steps or collectives: one finished, another still waited here. Look "
    "for batches that are not the same number on every rank, and for returns or breaks that depend on the rank.",
    zh_cn="各 rank 执行的步数或集合通信次数不同：一个已结束，另一个仍在此处等待。请检查各 rank 的批次数是否相同，"
    "以及依赖 rank 的 return 或 break。",
)
PEERS_LINE = Translated(
    en="This rank left no line; the one shown is where rank {peer} was in the collective with it.",
    zh_cn="该 rank 没有留下行号；所示行是 rank {peer} 与它进行集合通信时所在的行。",
)
CRASHED_LEAVING = Translated(
    en="Its script had ended when compiled code crashed in its process ({signal}): that follows, and "
    "dist.destroy_process_group() at the end of the script avoids it.",
    zh_cn="其脚本结束之后，进程中的编译代码才崩溃（{signal}）：这是后果，在脚本末尾调用 "
    "dist.destroy_process_group() 可避免。",
)
LAUNCHER = Translated(
    en="The launcher ended with an error and no rank left a reason; its output is in the log.",
    zh_cn="启动器报错退出，且没有 rank 留下原因；其输出见日志。",
)
LOST_MESSAGE = Translated(en="the run's supervisor died", zh_cn="运行的监督进程已终止")
LOST = Translated(
    en="The process that watches the run was ended from outside, so the run's end was not seen.",
    zh_cn="监督运行的进程被外部终止，因此没有看到运行如何结束。",
)
_UNCONNECTED_MESSAGE = Translated(
    en="{ranks} ranks trained, and no process group connected them",
    zh_cn="{ranks} 个 rank 都在训练，但没有进程组把它们连接起来",
)
_UNCONNECTED = Translated(
    en="Each rank trained a model of its own on its own: nothing averaged the gradients. Use Accelerator or the "
    "Trainer, or call init_process_group and wrap the model in DistributedDataParallel.",
    zh_cn="每个 rank 各自训练了自己的模型：梯度没有求平均。请使用 Accelerator 或 Trainer，或调用 "
    "init_process_group 并用 DistributedDataParallel 包装模型。",
)


def both(one: Translated, other: Translated) -> Translated:
    """Two sentences, one after the other."""
    return Translated(f"{one.en} {other.en}", one.zh_cn + other.zh_cn)


def exited(status: int, how: str) -> Translated:
    """The message for a rank that ended itself; ``how``: the call, or "" where it is not known."""
    suffix = f" ({how})" if how else ""
    return Translated(f"ended with exit status {status}{suffix}", f"以退出码 {status} 结束{suffix}")


def unconnected(ranks: int, language: Language) -> Failure:
    """The silent failure of ranks that never formed a group."""
    message = _UNCONNECTED_MESSAGE.filled(ranks=ranks)
    return without_place("unconnected-ranks", message, _UNCONNECTED, language)


def without_place(
    kind: str, message: Translated, explanation: Translated, language: Language
) -> Failure:
    """A failure of the run as a whole."""
    return Failure(
        kind=kind,
        code=None,
        rank=None,
        message=message.in_language(language),
        filename=None,
        line=None,
        column=None,
        end_line=None,
        end_column=None,
        frames=(),
        explanation=explanation,
    )
