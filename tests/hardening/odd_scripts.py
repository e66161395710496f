"""Small scripts that end, print or behave oddly: each must go with ``ranksafe run`` as it goes without."""

from __future__ import annotations

from typing import Final

ODD_SCRIPTS: Final[dict[str, str]] = {
    "nothing": "",
    "exit_0": "import sys; print('a'); sys.exit(0)",
    "exit_7": "import sys; print('a'); sys.exit(7)",
    "exit_256": "import sys; sys.exit(256)",
    "exit_with_text": "import sys; print('a'); sys.exit('a reason')",
    "exit_none": "import sys; sys.exit(None)",
    "os_exit_0": "import os; print('a', flush=True); os._exit(0)",
    "os_exit_9": "import os; os.write(1, b'a'); os._exit(9)",
    "os_exit_unflushed": "import os; print('a', end=''); os._exit(0)",
    "abort": "import os; print('a', flush=True); os.abort()",
    "killed": "import os; print('a', flush=True); os.kill(os.getpid(), 9)",
    "terminated": "import os; print('a', flush=True); os.kill(os.getpid(), 15)",
    "interrupted": "import os, signal; print('a', flush=True); os.kill(os.getpid(), signal.SIGINT)",
    "segfault": "import os, signal; print('a', flush=True); os.kill(os.getpid(), signal.SIGSEGV)",
    "raises": "print('a'); raise ValueError('b')",
    "raises_a_group": "print('a')\nclass Own(BaseException): pass\nraise Own('b')",
    "raises_at_exit": "import atexit\natexit.register(lambda: 1 / 0)\nprint('a')",
    "prints_at_exit": "import atexit\natexit.register(print, 'last')\nprint('first')",
    "exits_at_exit": "import atexit, os\natexit.register(os._exit, 5)\nprint('a', flush=True)",
    "both_streams": "import sys\nfor i in range(50):\n    print('out', i)\n    print('err', i, file=sys.stderr)",
    "no_newline": "import sys; sys.stdout.write('a\\nb')",
    "empty_lines": "print(); print(); print('a'); print()",
    "single_bytes": "import os\nfor each in b'one byte\\nafter another\\n': os.write(1, bytes([each]))",
    "huge_line": "import sys; sys.stdout.write('x' * 3_000_000 + '\\nend\\n')",
    "huge_line_without_end": "import sys; sys.stdout.write('x' * 300_000)",
    "many_lines": "for i in range(60_000): print(i, 'a line')",
    "nul_bytes": "import os; os.write(1, b'a\\0b\\0\\n\\0')",
    "all_bytes": "import os; os.write(1, bytes(range(256)) * 40)",
    "cut_character": "import os, time\nos.write(1, b'\\xe4\\xb8'); time.sleep(0.3); os.write(1, b'\\xad\\n')",
    "escapes": "print('\\x1b[31mred\\x1b[0m \\x07 \\u202e \\u2028 \\x85 end')",
    "progress": "import sys\nfor i in range(9): sys.stdout.write(f'\\r{i}')\nprint('\\rdone')",
    "carriage_returns": "import os; os.write(1, b'a\\r\\nb\\r\\n')",
    "looks_like_ours": "print('[rank 0] a'); print('[rank0]: b'); print('[launcher] c'); print('output rank0.stdout 5')",
    "threads": (
        "import threading\ngo = threading.Event()\n"
        "all = [threading.Thread(target=lambda: (go.wait(), print('a\\n', end=''))) for _ in range(100)]\n"
        "[each.start() for each in all]; print(threading.active_count()); go.set(); [each.join() for each in all]"
    ),
    "fork": "import os\nif os.fork() == 0:\n    os.write(1, b'child\\n'); os._exit(3)\nprint(os.wait()[1])",
    "fork_that_exits": "import os\nprint('before', flush=True)\nif os.fork():\n    os.wait()\nprint('after')",
    "fork_server": (
        "import multiprocessing\nif __name__ == '__main__':\n    multiprocessing.set_start_method('forkserver')\n"
        "    p = multiprocessing.Process(target=print, args=('child',)); p.start(); p.join(); print(p.exitcode)"
    ),
    "own_group": "import os; os.setpgid(0, 0); print('a')",
    "own_session": "import os\nif os.fork() == 0:\n    os.setsid(); print('child'); os._exit(0)\nos.wait(); print('a')",
    "ignores_signals": (
        "import signal\nfor n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)\nprint('a')"
    ),
    "signal_state": "import signal\nprint([str(signal.getsignal(n)) for n in range(1, 32) if n != 17])",
    "handles_alarm": (
        "import signal, time\nsignal.signal(signal.SIGALRM, lambda *_: print('rang'))\nsignal.setitimer(signal.ITIMER_REAL, 0.2)\n"
        "time.sleep(0.6)"
    ),
    "closes_stdout": "import os; print('a', flush=True); os.close(1)\ntry: os.write(1, b'b')\nexcept OSError as e: os._exit(e.errno)",
    "closes_stdout_object": "import sys; print('a'); sys.stdout.close()",
    "closes_all": "import os; os.write(1, b'a\\n'); os.closerange(0, 4096); os._exit(4)",
    "writes_to_3": "import os\ntry: os.write(3, b'x')\nexcept OSError as e: print(e)",
    "next_descriptor": "import os; print(os.open('/dev/null', 0), os.dup(1), os.pipe())",
    "descriptors": "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd') if int(n) < 100))",
    "reads_stdin": "import sys; print(repr(sys.stdin.read()))",
    "asks": "try: input('? ')\nexcept EOFError: print('nobody')",
    "replaces_stdout": "import os\nr, w = os.pipe(); s = os.dup(1); os.dup2(w, 1); print('x', flush=True); os.dup2(s, 1); print(os.read(r, 9))",
    "subprocess": "import subprocess, sys; print(subprocess.call([sys.executable, '-c', 'print(1); exit(6)']))",
    "shell": "import os; print(os.waitstatus_to_exitcode(os.system('echo out; echo err >&2; exit 3')))",
    "exec": "import os, sys; print('a', flush=True); os.execv(sys.executable, [sys.executable, '-c', 'print(2); exit(8)'])",
    "environment": "import os; print([n for n in sorted(os.environ) if 'RANKSAFE' in n or n == 'PYTHONPATH'])",
    "paths": "import sys; print([p for p in sys.path if 'ranksafe' in p or 'inject' in p], sys.argv[1:], __name__)",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('own hook')\nraise ValueError",
    "thread_that_raises": "import threading\nt = threading.Thread(target=lambda: 1 / 0); t.start(); t.join(); print('a')",
    "recursion": "def f(): f()\ntry: f()\nexcept RecursionError: print('deep')",
    "memory": "x = bytearray(200_000_000); print(len(x))",
    "broken_sitecustomize_import": "import sitecustomize_that_is_not_there",
    "syntax_error": "print('a'\n",
    "daemon_thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start(); print('a')",
    "umask_and_directory": "import os; print(oct(os.umask(0)), os.getcwd() == os.path.dirname(os.path.abspath(__file__)))",
    "buffering": "import sys; print(sys.stdout.line_buffering, sys.stdout.isatty(), sys.stdout.encoding)",
}
"""By name. Started with ``python -u``, as ``--launcher python`` does."""
