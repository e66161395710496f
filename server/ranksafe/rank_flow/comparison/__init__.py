"""Compares what two ranks do, and says where they part.

`comparison` goes through both traces side by side; `walk` is the way through one of them, `loops` has what only loops
need, `separation` finds the branch at which the ranks went different
ways. What comes out are `differences`.
"""
