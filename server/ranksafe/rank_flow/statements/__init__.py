"""What statements do on one rank.

`statements` finds what runs a statement, and has the simple ones: expressions, definitions, ways out. `assignments`
gives names values. `branches` runs one arm or both; `untaken` says what a rank lacks of the arm that it does not take;
where paths meet again, `paths` joins what they know. `loops`, `exceptions` and `contexts` run what they are named for.
"""
