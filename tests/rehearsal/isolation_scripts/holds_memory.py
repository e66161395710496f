"""Holds MiB (first argument) in each of N forked processes (second): their ``own``, or ``shared`` with the parent."""

import os
import sys
import time

size, number, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
one = os.urandom(1 << 20)
shared = one * size if kind == "shared" else b""
for _ in range(number):
    if os.fork() == 0:
        held = shared or one * size
        time.sleep(1.5)
        os.write(1, b"held it\n" if len(held) == size << 20 else b"lost it\n")
        os._exit(0)
for _ in range(number):
    os.wait()
