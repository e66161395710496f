"""The compiled half of a rehearsal: C++ that gives the user's own torch its simulated devices.

`native_files` is all that others need: it returns files that fit one torch installation, prebuilt, from the user's
cache, or compiled now. A process loads them before torch, in this order and all with RTLD_GLOBAL:

1. `NativeFiles.stand_ins`, as listed (a CUDA build of torch only: ``stand_ins`` says why),
2. ``libtorch_global_deps.so``, ``libc10.so`` and ``libtorch_cpu.so`` of torch's own ``lib`` folder, because
3. `NativeFiles.devices` names them as needed without saying where they are: one build serves every environment with
   the same torch,

then imports torch, and calls ``ranksafe_stand_ins_arm()`` of the first stand-in library. `NativeFiles.nccl_module` is
an ordinary extension module, imported after ``torch.distributed``.
"""

from ranksafe.rehearsal.native.build import native_files
from ranksafe.rehearsal.native.cache import BuildStopped

__all__ = ["BuildStopped", "native_files"]
