"""Programs that run on a cluster's login node, sent there as text: standard library only, CPython 3.8 and newer."""
