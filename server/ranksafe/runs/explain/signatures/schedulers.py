"""What Slurm says of a job (Slurm 22.05 to 24: ``slurmstepd``, ``srun``, ``sbatch``)."""

from __future__ import annotations

from ranksafe.runs.explain.signatures.signature import Signature, signature

SIGNATURES: tuple[Signature, ...] = (
    signature(
        "host-out-of-memory",
        r"^slurmstepd(?:-(?P<node>\S+?))?: error: Detected (?P<count>\d+) oom[-_]kill event(?:s|\(s\))? in (?:StepId="
        r"|step )?(?P<step>[\w.]+?)\.?(?:\s|$)",
        en="The job step {step} reached its memory limit, and the kernel killed {count} of its processes[[ on node "
        "{node}]]. "
        "This is memory of the machine, not of the GPU: ask for more (--mem, --mem-per-cpu), or load lazily and use "
        "fewer "
        "DataLoader workers.",
        zh="作业步 {step} 达到内存上限，内核终止了其中 {count} 个进程[[（节点：{node}）]]。这是主机内存，不是显存："
        "请申请更多内存（--mem、--mem-per-cpu），或惰性加载并减少 DataLoader worker 数。",
    ),
    signature(
        "host-out-of-memory",
        r"^srun: error: (?P<node>\S+): tasks? (?P<tasks>[\d,-]+): Out Of Memory",
        en="On node {node}, task {tasks} was killed because the job reached its memory limit. This is memory of the "
        "machine, not of the GPU: ask for more (--mem), or load lazily and use fewer DataLoader workers.",
        zh="节点 {node} 上的任务 {tasks} 因作业达到内存上限而被终止。这是主机内存，不是显存："
        "请申请更多内存（--mem），或惰性加载并减少 DataLoader worker 数。",
    ),
    signature(
        "host-out-of-memory",
        # Slurm up to 20.
        r"^slurmstepd(?:-\S+)?: error: (?:Step|Job) (?P<step>[\w.]+) exceeded memory limit "
        r"\((?P<held>\d+) > (?P<limit>\d+)\), being killed",
        en="The job step {step} held {held} kB and may have {limit} kB, so Slurm killed it. This is memory of the "
        "machine, not of the GPU: ask for more (--mem, --mem-per-cpu), or load lazily and use fewer DataLoader "
        "workers.",
        zh="作业步 {step} 占用 {held} kB，而上限为 {limit} kB，因此被 Slurm 终止。这是主机内存，不是显存："
        "请申请更多内存（--mem、--mem-per-cpu），或惰性加载并减少 DataLoader worker 数。",
    ),
    signature(
        "time-limit",
        r"(?:JOB|STEP) (?P<job>\S+) (?:ON (?P<node>\S+) )?CANCELLED AT (?P<time>\S+) DUE TO TIME LIMIT",
        en="The scheduler ended job {job} at its time limit ({time}); nothing in the code failed. Ask for more time "
        "(--time), or save checkpoints and resume.",
        zh="调度器在时间上限（{time}）结束了作业 {job}；代码没有出错。请申请更长时间（--time），或保存检查点后继续。",
    ),
    signature(
        "preempted",
        r"(?:JOB|STEP) (?P<job>\S+) ON (?P<node>\S+) CANCELLED AT (?P<time>\S+) DUE TO (?P<why>JOB REQUEUE"
        r"|PREEMPTION)",
        en="The scheduler took the machines away from job {job} ({why}, {time}); your code is not the cause. A "
        "requeued "
        "job goes on under the same number.",
        zh="调度器收回了作业 {job} 的机器（{why}，{time}），与你的代码无关。重新排队的作业会以相同编号继续。",
    ),
    signature(
        "node-failure",
        r"^srun: error: Node failure on (?P<node>\S+)|CANCELLED AT (?P<time>\S+) DUE TO NODE FAILURE",
        en="A machine of the job failed[[ (node {node})]][[ ({time})]]; your code is not the cause. Submit again "
        "without it "
        "(--exclude).",
        zh="作业的一台机器发生故障[[（节点 {node}）]][[（{time}）]]，与你的代码无关。"
        "请排除它后重新提交（--exclude）。",
    ),
    signature(
        "submit-rejected",
        r"^(?P<program>sbatch|srun|salloc): error: (?:Batch job submission failed|Unable to allocate resources"
        r"|Job submit/allocate failed): (?P<why>.+)",
        en="The scheduler did not accept the job: {why}. No node or partition offers what was asked; `sinfo -o "
        '"%P %N %G %m"` shows what there is.',
        zh='调度器没有接受作业：{why}。没有节点或分区能满足请求；`sinfo -o "%P %N %G %m"` 可查看现有资源。',
    ),
    signature(
        "missing-launcher",
        r"execve\(\): (?P<program>\S+): No such file",
        en="{program} is not on the job's PATH: start it with the environment's own Python (python -m "
        "accelerate.commands.launch, python -m torch.distributed.run).",
        zh="作业的 PATH 中没有 {program}：请用该环境自己的 Python 启动（python -m accelerate.commands.launch、"
        "python -m torch.distributed.run）。",
    ),
    signature(
        "missing-launcher",
        # bash, dash and zsh word it differently.
        r"^\S*(?:sh|\.sh|slurm_script)(?:: line \d+|: \d+)?: (?P<program>torchrun|accelerate|deepspeed|python3?|srun"
        r"|uv): "
        r"(?:command )?not found|^zsh: command not found: (?P<name>torchrun|accelerate|deepspeed|python3?|srun|uv)",
        en="[[{program}]][[{name}]] is not on the PATH there: activate the environment, or start it with the "
        "environment's own "
        "Python (python -m torch.distributed.run, python -m accelerate.commands.launch).",
        zh="那里的 PATH 中没有 [[{program}]][[{name}]]：请激活环境，或用该环境自己的 Python 启动（python -m "
        "torch.distributed.run、python -m accelerate.commands.launch）。",
    ),
    signature(
        "cancelled",
        r"\*\*\* (?:JOB|STEP) (?P<job>\S+) ON (?P<node>\S+) CANCELLED AT (?P<time>\S+)"
        r"(?: DUE (?:to|TO) SIGNAL (?P<signal>\w[\w ]*?))? \*\*\*",
        secondary=True,
        en="The scheduler ended {job} on {node} at {time}[[ ({signal})]]: somebody cancelled it, or another task of it "
        "failed first (srun --kill-on-bad-exit).",
        zh="调度器于 {time} 结束了 {node} 上的 {job}[[（{signal}）]]：有人取消了它，或它的另一个任务先失败了（srun "
        "--kill-on-bad-exit）。",
    ),
    signature(
        "time-limit",
        # OpenPBS and Torque; LSF.
        r"PBS: job killed: walltime (?P<held>\d+) exceeded limit (?P<limit>\d+)|^TERM_RUNLIMIT: job killed",
        en="The scheduler ended the job at its time limit[[ ({limit} s)]]; nothing in the code failed. Ask for more "
        "time, or save checkpoints and resume.",
        zh="调度器在作业达到时间上限[[（{limit} 秒）]]时终止了它；代码本身没有失败。请申请更长时间，"
        "或保存检查点后继续。",
    ),
    signature(
        "host-out-of-memory",
        r"PBS: job killed: v?mem (?P<held>\d+\w+) exceeded limit (?P<limit>\d+\w+)"
        r"|^TERM_MEMLIMIT: job killed",
        en="The scheduler killed the job because it reached its memory limit[[ ({held} of {limit})]]. This is "
        "memory of "
        "the machine, not of the GPU: ask for more, or load lazily and use fewer DataLoader workers.",
        zh="作业达到内存上限[[（{held}，上限 {limit}）]]，被调度器终止。这是主机内存，不是显存：请申请更多内存，"
        "或惰性加载并减少 DataLoader worker 数。",
    ),
    signature(
        "submit-rejected",
        r"^srun: (?:error: Unable to create step for job \d+: |fatal: )(?P<why>[^\n]+)",
        en="srun could not start the step: {why}. It has to fit into what sbatch or salloc got; ask for it there, or "
        "for less here.",
        zh="srun 无法启动作业步：{why}。它必须在 sbatch 或 salloc 已获得的资源之内：请在那里申请，或在此减少请求。",
    ),
    signature(
        "missing-launcher",
        r"execve\(\): (?P<program>\S+): Permission denied",
        en="{program} is not executable: start it with Python (srun python {program}), or set its mode (chmod +x).",
        zh="{program} 没有可执行权限：请用 Python 启动（srun python {program}），或设置权限（chmod +x）。",
    ),
    signature(
        "missing-launcher",
        # CPython, python -m.
        r"^\S*python[\d.]*: No module named (?P<name>[\w.]+)$",
        en="The Python that was started has no module {name}: it is another interpreter than the one in which the "
        "packages are installed. Activate the environment in the job's script, or name its Python by its full path.",
        zh="所启动的 Python 没有模块 {name}：它不是安装了这些包的解释器。请在作业脚本中激活环境，或使用其 Python "
        "的完整路径。",
    ),
    signature(
        "missing-launcher",
        r"^/usr/bin/env: .(?P<program>\w[\w.]*).: No such file or directory"
        r"|^\S*: line \d+: (?P<file>\S+/bin/activate): No such file or directory"
        r"|(?P<conda>Your shell has not been properly configured to use 'conda activate')",
        en="The environment was not activated there[[: no {program} on the PATH]][[: {file} does not exist]][[ "
        "({conda})]]. In a job's script source the environment's own file first (conda: source "
        "…/etc/profile.d/conda.sh), or name its Python by its full path.",
        zh="那里没有激活环境[[：PATH 中没有 {program}]][[：{file} 不存在]][[（{conda}）]]。请在作业脚本中先 source "
        "环境自己的文件（conda：source …/etc/profile.d/conda.sh），或使用其 Python 的完整路径。",
    ),
    signature(
        "gpu-not-ready",
        # docker with the nvidia runtime missing.
        r"docker: Error response from daemon: could not select device driver [^\n]*capabilities: \[\[gpu\]\]",
        en="Docker cannot give the container a GPU: the NVIDIA Container Toolkit is not installed or not configured on "
        "that machine.",
        zh="Docker 无法为容器提供 GPU：该机器上没有安装或配置 NVIDIA Container Toolkit。",
    ),
)
