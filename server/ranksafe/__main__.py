"""``ranksafe`` and ``python -m ranksafe``."""

import sys


def start() -> None:
    """Run the command line of this process and exit with its status; silently at a Ctrl+C, also one that comes while
    the modules are being loaded, which takes seconds on a cold disk."""
    try:
        from ranksafe.cli.main import run_command_line

        run_command_line()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    start()
