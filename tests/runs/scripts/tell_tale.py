"""Prints whatever a script could notice of an agent beside it, warns, and ends with a status of its own."""

import os
import sys
import threading
import warnings

print("arguments", sys.argv[1:])
print("path", [entry for entry in sys.path if "ranksafe" in entry])
print(
    "environment",
    sorted(name for name in os.environ if "RANKSAFE" in name),
    os.environ.get("PYTHONPATH"),
)
print("threads", threading.active_count())
print("name", __name__, threading.current_thread() is threading.main_thread())
warnings.warn("a warning", stacklevel=1)
child = os.fork()
if child == 0:
    os._exit(4)
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    sys.exit("caught and gone on")
except SystemExit as error:
    print("exit", error.code)
sys.stdout.flush()
print("to stderr", file=sys.stderr)
raise {"value": ValueError("the end"), "exit": SystemExit(5), "none": SystemExit(0)}[sys.argv[1]]
