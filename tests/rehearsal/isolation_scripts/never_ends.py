"""Starts processes in sessions of their own, one of them an orphan that ignores SIGTERM, and waits for ever."""

import os
import signal
import time
from pathlib import Path

if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() != 0:
        os._exit(0)
    time.sleep(600)
if os.fork() == 0:
    time.sleep(600)
Path("../run/started").write_text("yes")
while True:
    time.sleep(1)
