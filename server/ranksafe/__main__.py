"""``python -m ranksafe``."""

from ranksafe.cli.main import run_command_line

run_command_line()
