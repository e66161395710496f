"""Findings to edits, preserving the user's formatting. Only this folder and the rules' fix modules know libcst."""
