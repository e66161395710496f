"""Programs that a job runs on its nodes, laid into the run's folder: standard library only, CPython 3.8 and newer."""
