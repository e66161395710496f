"""What is kept of a run: how it was asked for, on what it ran, which code it ran, how it ended; and the history of it.

One folder per run (`ranksafe.runs.directory`), two files of ours in it: ``snapshot.json`` is written when the run
starts, ``result.json`` when it has ended. Values of environment variables are in neither, and what looks like a secret
is blotted out before anything is written.
"""
