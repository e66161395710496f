"""Starts the template, and is what runs in its forks: nothing else is left on their stacks."""

from __future__ import annotations

from importlib import import_module

become = import_module("ranksafe_rehearsal.warm.template").main()
if become is not None:
    become.run()
