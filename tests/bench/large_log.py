"""How fast a large log is explained, and in how much memory: ``python tests/bench/large_log.py [MEGABYTES]``.

Nothing is written: the log of eight ranks is made while it is read. The time includes making it, which is told apart.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator

from ranksafe.runs.diagnosis.follow_log import FollowedLog

_FAILURE = b"""\
[rank5]: Traceback (most recent call last):
[rank5]:   File "/home/user/train.py", line 9, in <module>
[rank5]:     main()
[rank5]: KeyError: 7
"""


def _pieces(megabytes: int) -> Iterator[bytes]:
    """Lines of steps, progress bars, and a warning now and then."""
    step = size = 0
    while size < megabytes << 20:
        lines: list[str] = []
        for _ in range(1000):
            step += 1
            lines += [f"[rank{rank}]: step {step} loss {1 / step:.6f} lr 1e-5" for rank in range(8)]
        lines.append(f"[rank{step // 1000 % 8}]: UserWarning: error in shard {step}, skipped")
        lines.append(f"\r  7%|#   | {step}/9999999 [00:01<10:00,  8.6it/s]" * 200)
        data = "\n".join(lines).encode() + b"\n"
        size += len(data)
        yield data


def main(megabytes: int) -> None:
    """Print one line of numbers."""
    started = time.process_time()
    for _ in _pieces(megabytes):
        pass
    made = time.process_time() - started
    log = FollowedLog()
    for data in _pieces(megabytes):
        log.feed(data)
    log.feed(_FAILURE)
    (found,) = log.finish()
    assert (found.rank, found.line) == (5, 9)
    seconds = time.process_time() - started - 2 * made
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{megabytes} MB: {seconds:.1f} s of processor time, {peak} MB at most")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
