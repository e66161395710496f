"""Rank 1 raises, but its process stays for a thread; rank 0 takes its time."""

import os
import threading
import time

if os.environ["RANK"] == "1":
    threading.Thread(target=time.sleep, args=(600,)).start()
    raise ValueError("the reason")
time.sleep(600)
