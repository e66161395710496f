"""What torch's own MemTracker says that a program's tensors take at their peak, in bytes: ``mem_tracker.py PROGRAM […]``.

The program has ``made`` and ``step``. Its tensors are torch's fake ones, so it runs on any machine; what CUDA's libraries
take for themselves is not counted.
"""

import importlib.util
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

sys.argv.pop(0)
specification = importlib.util.spec_from_file_location("program", sys.argv[0])
program = importlib.util.module_from_spec(specification)
specification.loader.exec_module(program)
with FakeTensorMode(allow_non_fake_inputs=True):
    trained = program.made()
    tracker = MemTracker()
    tracker.track_external(*trained)
    with tracker:
        for number in range(2):
            program.step(*trained)
            if number == 0:
                # Statistics of modules refuse a second step.
                tracker.reset_mod_stats()
print(tracker.get_tracker_snapshot("peak")[torch.device("cuda", 0)]["Total"])
