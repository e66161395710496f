"""Watches a run that goes on: what each rank does, whether all of them can still make progress, and if not, why."""
