"""Rank flow: which collectives each rank performs, and where ranks part.

A function is run abstractly once for every rank of a small world (`interpreter`, `statements`, `expressions`, `calls`):
the rank is a number, everything that cannot be computed from it is unknown, with a note of whether the other ranks
have the same (`values`). Calls are followed, across files too (`followed_calls`, `functions`); what is not followed is
known from a table (`collective_calls`) or by its name (`library_calls`). What remains is a tree of collectives,
undecided branches, loops and exits (`traces`); two ranks' trees are compared (`comparison`), and each branch on a value
that differs per rank is judged on its own (`local_decisions`). `analysis` does this for every function of a file and
`into_issues` says what is wrong; `diagram` lays two ranks' trees side by side. The table of operations is data
(`collectives.json`).
"""
