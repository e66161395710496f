"""Findings in public repositories that nobody had used, judged one by one."""
