"""Values of expressions on one rank.

`expressions` finds what evaluates an expression, and has names and attributes; `operators` computes, `conditions`
decides (``and``, ``or``, ``x if c else y``), `containers` builds collections and `subscripts` takes parts of them.
"""
