"""Two ranks write a line each in two pieces, the second when both have written the first.

runs-on: cpu-ranks
ranks: 2
expect: output ^rank 0 ends its line$
expect: output ^rank 1 ends its line$
"""

import os

from accelerate import Accelerator

accelerator = Accelerator()
os.write(1, f"rank {accelerator.process_index} ".encode())
accelerator.wait_for_everyone()
os.write(1, b"ends its line\n")
