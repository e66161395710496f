"""What the server says to people, in both languages. (What rules say stands in the rules.)"""

from __future__ import annotations

from typing import Final

from ranksafe.localization import Translated

RUN_LENS: Final = Translated("Run on GPUs ({count})", "在 GPU 上运行（{count}）")
RUN_LENS_UNCOUNTED: Final = Translated("Run on GPUs", "在 GPU 上运行")
RUN_LENS_CPU: Final = Translated(
    "Run on {count} CPU ranks (no CUDA device)", "在 {count} 个 CPU rank 上运行（无 CUDA 设备）"
)
RUN_LENS_TARGET: Final = Translated("Run on {target}", "在 {target} 上运行")
REHEARSE_LENS: Final = Translated("Rehearse on {count} GPUs", "在 {count} 个模拟 GPU 上预演")
SMOKE_LENS: Final = Translated("Smoke run ({steps} steps)", "试运行（{steps} 步）")
FIT_LENS: Final = Translated("Does it fit?", "能放下吗？")
FIT_LENS_ON: Final = Translated("Does it fit {count} × {model}?", "{count} × {model} 能放下吗？")
FIT_LOG_LENS: Final = Translated("No forecast: open log", "没有预测：打开日志")
FIT_REPORT_LENS: Final = Translated("Timeline", "时间线")
FIT_SEARCH_LENS: Final = Translated("What would make it fit?", "怎样才能放下？")
FIT_OUTDATED: Final = Translated("{answer} (before the last edits)", "{answer}（最近的修改之前）")
CANCEL_FIT_LENS: Final = Translated("Cancel forecast", "取消预测")
CANCEL_LENS: Final = Translated("Cancel run", "取消运行")
LOG_LENS: Final = Translated("Open log", "打开日志")
PASSED_LENS: Final = Translated(
    "Passed on {count} ranks, {seconds} s: open report",
    "在 {count} 个 rank 上通过，{seconds} 秒：打开报告",
)
REHEARSAL_PASSED_LENS: Final = Translated(
    "Rehearsal passed on {count} GPUs, {seconds} s: open report",
    "在 {count} 个模拟 GPU 上通过预演，{seconds} 秒：打开报告",
)
ENDED_LENS: Final = Translated(
    "{outcome} after {seconds} s: open report", "{seconds} 秒后{outcome}：打开报告"
)
RUN_ENDED: Final = Translated("Ended", "结束")
OUTCOMES: Final = {
    "failed": Translated("Failed", "失败"),
    "silent-failure": Translated("Wrong without an error", "结果有误但没有报错"),
    "simulation-limit": Translated("Met a limit of the simulation", "遇到模拟的限制"),
    "cancelled": Translated("Cancelled", "取消"),
}
"""How the lens of a run that did not succeed begins, by `ranksafe.runs.model.Outcome`."""

FIX_ALL: Final = Translated("Fix all safe ranksafe findings", "修复所有可安全修复的 ranksafe 问题")
SUPPRESS: Final = Translated("Ignore {code} on this line", "在此行忽略 {code}")
SUPPRESS_IN_FILE: Final = Translated("Ignore {code} in this file", "在此文件中忽略 {code}")
SUPPRESS_IN_PROJECT: Final = Translated(
    "Ignore {code} in this project ({file})", "在此项目中忽略 {code}（{file}）"
)
CONFIGURATION_KEPT: Final = Translated(
    "{file} is left as it is: it cannot be read, or leaves {code} out already.",
    "{file} 保持不变：无法读取该文件，或其中已忽略 {code}。",
)
MORE_FINDINGS: Final = Translated(
    "{shown} of {found} findings are shown, errors first: `ranksafe check` shows all of them",
    "共 {found} 个问题，只显示其中 {shown} 个，错误优先：`ranksafe check` 会显示全部",
)
OPEN_RULE: Final = Translated("Open the page of {code} ({name})", "打开 {code}（{name}）的说明页")
PROVE: Final = Translated(
    "Prove {code}: run its failing program and the fixed twin",
    "验证 {code}：运行会失败的程序及其修复后的版本",
)
RUN_BLOCKING: Final = Translated(
    "Run again with CUDA_LAUNCH_BLOCKING=1, for the right line",
    "用 CUDA_LAUNCH_BLOCKING=1 重新运行，以得到准确的行",
)
CODE_CHANGED: Final = Translated(
    "The code has changed since this fix was offered.", "提供此修复后代码已发生变化。"
)
LIBCST_MISSING: Final = Translated(
    "This fix needs libcst, which the server's Python does not have: pip install libcst",
    "此修复需要 libcst，但服务器的 Python 未安装它：pip install libcst",
)

LAUNCH_HEADING: Final = Translated("Launch, as far as it is known", "已知的启动方式")
LAUNCH_GPUS: Final = Translated("{count} GPUs ({source})", "{count} 个 GPU（{source}）")
LAUNCH_GPUS_ASSUMED: Final = Translated(
    "GPUs not known: {count} are assumed", "GPU 数量未知：假定为 {count} 个"
)
LAUNCH_LAUNCHER: Final = Translated(
    "started by {launcher} ({source})", "由 {launcher} 启动（{source}）"
)
LAUNCH_LAUNCHER_UNKNOWN: Final = Translated("launcher not known", "启动器未知")
LAUNCH_VERSION: Final = Translated("{name} {version} ({source})", "{name} {version}（{source}）")
LAUNCH_NO_VERSIONS: Final = Translated(
    "no installed training library was found: choose the project's interpreter or use `assume`",
    "未找到已安装的训练库：请选择项目的解释器，或使用 `assume`",
)
RULE_LINK: Final = Translated("About {code}", "关于 {code}")

NOT_TRUSTED: Final = Translated(
    "ranksafe runs nothing until this workspace is trusted.",
    "工作区受信任之前，ranksafe 不会运行任何程序。",
)
NOT_UNDER_FOLDER: Final = Translated(
    "ranksafe runs only Python files inside an open folder; {file} is not.",
    "ranksafe 只运行已打开文件夹中的 Python 文件；{file} 不在其中。",
)
NOT_SAVED: Final = Translated(
    "Save first, then run: {files} differ from the files on disk.",
    "请先保存再运行：{files} 与磁盘上的文件不同。",
)
UNKNOWN_TARGET: Final = Translated(
    "There is no target named {target}.", "没有名为 {target} 的运行目标。"
)
DEBUG_ONLY_HERE: Final = Translated(
    "A debugger can be attached on this machine only, and {file} runs on {target}: choose local as where to run.",
    "调试器只能附加到本机上的运行，而 {file} 的运行目标是 {target}：请把运行目标改为 local。",
)
ALREADY_RUNNING: Final = Translated(
    "{file} is running already; cancel that run first.", "{file} 已在运行；请先取消该次运行。"
)
NO_RUN: Final = Translated("No run of ranksafe is going on.", "当前没有 ranksafe 运行。")
NO_LOG: Final = Translated("There is no log of a run yet.", "还没有运行日志。")
LOG_AT: Final = Translated("The log of the run: {path}", "运行日志：{path}")
REPORT_AT: Final = Translated("The report of the run: {path}", "运行报告：{path}")
STACKS_AT: Final = Translated("Where every rank is: {path}", "各个 rank 的位置：{path}")
RUNS_AT: Final = Translated("The list of runs: {path}", "运行列表：{path}")
COPY_LAUNCH: Final = Translated(
    "Launch command for SkyPilot, dstack, Ray, Kubernetes, SageMaker…",
    "用于 SkyPilot、dstack、Ray、Kubernetes、SageMaker 的启动命令…",
)
LAUNCH_FORM: Final = Translated("For which engine?", "用于哪个平台？")
LAUNCH_TEXT_AT: Final = Translated("The launch command: {path}", "启动命令：{path}")
LOG_ANNOTATED: Final = Translated(
    "{file}: {count} failures are drawn on their lines; {unknown} are in no open folder.",
    "{file}：已在对应行上标出 {count} 个故障；{unknown} 个不在已打开的文件夹中。",
)
LOG_WITHOUT_FAILURE: Final = Translated(
    "{file}: no failure with a line in an open folder was recognised ({unknown} elsewhere).",
    "{file}：没有识别出位于已打开文件夹中的故障（其他位置 {unknown} 个）。",
)
MOVED_SINCE: Final = Translated(
    "The file has changed since: the line was found by its text.",
    "文件此后已更改：该行是按内容找到的。",
)
CLUSTERS_AT: Final = Translated(
    "Describe the cluster in {path}: partition, account, GPUs of a node.",
    "请在 {path} 中描述该集群：分区、账户、每个节点的 GPU 数。",
)
NO_RULE: Final = Translated("ranksafe has no rule {code}.", "ranksafe 没有规则 {code}。")
PAGE_AT: Final = Translated("The page of {code}: {path}", "{code} 的说明页：{path}")
WRONG_ARGUMENTS: Final = Translated(
    "The arguments of {command} are not right: {reason}", "{command} 的参数不正确：{reason}"
)
CANNOT_RUN: Final = Translated("The run could not be started: {reason}", "无法启动运行：{reason}")

RUN_TITLE: Final = Translated("Run {file}", "运行 {file}")
REHEARSAL_TITLE: Final = Translated(
    "Rehearse {file} on {count} simulated GPUs", "在 {count} 个模拟 GPU 上预演 {file}"
)
SMOKE_TITLE: Final = Translated("Smoke run of {file}", "试运行 {file}")
PROVE_TITLE: Final = Translated("Prove {code}", "验证 {code}")
RUN_SUCCEEDED: Final = Translated(
    "{file} succeeded ({seconds} s).", "{file} 运行成功（{seconds} 秒）。"
)
RUN_FAILED: Final = Translated("{file} failed: {reason}", "{file} 运行失败：{reason}")
RUN_CANCELLED: Final = Translated("{file} was cancelled.", "{file} 的运行已取消。")
RUN_LIMIT: Final = Translated(
    "{file} met a limit of the simulation, which says nothing about the script: {reason}",
    "{file} 遇到了模拟环境的限制，这并不说明脚本有误：{reason}",
)
REHEARSAL_PASSED: Final = Translated(
    "{file} passed the rehearsal on simulated GPUs ({seconds} s).",
    "{file} 通过了模拟 GPU 上的预演（{seconds} 秒）。",
)
FIT_TITLE: Final = Translated(
    "Does {file} fit {count} × {model}?", "{count} × {model} 能放下 {file} 吗？"
)
FIT_ONCE_MORE: Final = Translated("memory ran out, now without a bound", "显存不足，改为没有上限")
FIT_TRYING: Final = Translated(
    "run {count} of at most {most}, {change}", "第 {count} 次（最多 {most} 次），{change}"
)
FIT_CANCELLED: Final = Translated(
    "The forecast of {file} was cancelled.", "{file} 的显存预测已取消。"
)
FIT_FAILED: Final = Translated(
    "The memory of {file} could not be forecast: {reason}", "无法预测 {file} 的显存：{reason}"
)
FIT_NO_ANSWER: Final = Translated(
    "No forecast of {file}'s memory, the run ended in another way: {reason}",
    "没有 {file} 的显存预测，运行以其他方式结束：{reason}",
)
FIT_HELD: Final = Translated("held then, in GiB: {parts}", "此时占用（GiB）：{parts}")
FIT_AND: Final = Translated("{answer}. {search}", "{answer}。{search}")
FIT_HEADING: Final = Translated("GPU memory, as it was forecast", "预测的显存")
FIT_LARGEST: Final = Translated(
    "The largest that was tried and fits: {change} ({needs}).",
    "尝试过且能放下的最大值：{change}（{needs}）。",
)
FIT_WITH: Final = Translated(
    "It fits with {change} ({needs}).", "使用 {change} 可放入（{needs}）。"
)
FIT_AFTER_EDIT: Final = Translated("After that edit:", "修改之后：")
FIT_NONE_FITS: Final = Translated("Nothing that was tried fits:", "尝试过的都无法放入：")
FIT_SET: Final = Translated("{change}: fits, {needs}", "{change}：可放入，{needs}")
FIT_SEARCH_ACTION: Final = Translated(
    "What would make it fit? At most {runs} more forecasts",
    "怎样才能放下？最多再预测 {runs} 次",
)
GO_ON: Final = Translated("Rehearse anyway", "仍然预演")
FAILED_WITHOUT_REASON: Final = Translated("see the log", "请查看日志")
ON_RANK: Final = Translated("on rank {rank}", "在 rank {rank} 上")
CALLED_FROM: Final = Translated("called in {function}", "由 {function} 调用")

INDEX_TITLE: Final = Translated("Reading {folder}", "正在读取 {folder}")
INDEXED: Final = Translated("{count} files ({seconds} s)", "{count} 个文件（{seconds} 秒）")

CONFIGURATION_PROBLEM: Final = Translated("{file}: {problem}", "{file}：{problem}")
UNKNOWN_SELECTOR: Final = Translated(
    "ranksafe settings: `{selector}` names no rule.", "ranksafe 设置：`{selector}` 不对应任何规则。"
)
RULE_PROBLEM: Final = Translated("A rule could not be loaded: {problem}", "无法加载规则：{problem}")
PROOFS_MISSING: Final = Translated(
    "{code} has no proof that can be run.", "{code} 没有可运行的验证程序。"
)
PROVED: Final = Translated(
    "{code} is proved: the failing program failed as the rule says, the fixed one did not.",
    "{code} 已验证：失败程序如规则所述失败，修复后的程序正常。",
)
NOT_PROVED: Final = Translated("{code} was not proved: {reason}", "{code} 未能验证：{reason}")
LAUNCH_JSON_KEPT: Final = Translated(
    ".vscode/launch.json is left as it is: it has this configuration already, or cannot be extended.",
    ".vscode/launch.json 保持不变：其中已有该配置，或该文件无法扩展。",
)
