"""Warm starts: processes of a rehearsal are forked from one that has imported already what they import first.

``template`` is that process; it belongs to the user, outside of every run. ``joining`` takes a fork of it into the
namespaces of a run, where it becomes the run's command (``becoming``); ``children`` lets a launcher start its ranks the
same way. Linux, CPython 3.11 or newer. A process in doubt starts the real command, which is a cold start.
"""
