"""What `ranksafe.runs.proof` is made of.

`emulated_data_parallel`, `replica_placement` and everything in ``injected/`` run inside the program that is proved,
under the user's Python; they import nothing of ranksafe. The other modules run in our own process.
"""
