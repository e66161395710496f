"""``ranksafe`` and ``python -m ranksafe``."""

import os
import sys


def start() -> None:
    """Run the command line of this process and exit with its status; silently at a Ctrl+C, also one that comes while
    the modules are being loaded, which takes seconds on a cold disk."""
    try:
        from ranksafe.cli.main import run_command_line

        run_command_line()
    except KeyboardInterrupt:
        sys.exit(130)


def leave_working_directory() -> None:
    """Import nothing more from where the user stands: ``python -m`` puts that folder before the standard library."""
    here = sys.path[0].rstrip(os.sep) if sys.path else ""
    is_safe = getattr(sys.flags, "safe_path", False)
    if not is_safe and not __file__.startswith(f"{here}{os.sep}"):
        del sys.path[:1]


if __name__ == "__main__":
    leave_working_directory()
    start()
