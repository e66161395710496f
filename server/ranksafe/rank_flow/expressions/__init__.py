"""Values of expressions on one rank.

`expressions` finds what evaluates an expression and has the simple kinds, `names` has names and attributes, `operators`
computes and decides (``and``, ``x if c else y``), `containers` builds collections and takes parts of them.
"""
