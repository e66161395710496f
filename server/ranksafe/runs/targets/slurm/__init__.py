"""Runs that are jobs of a Slurm cluster.

`settings` says which clusters there are, `cluster_facts` what there is on one, `batch` what is asked of it; `target`
puts a run together and submits it, `process` follows it. What runs on the login node and on the nodes is in folders of
its own, and imports nothing of ours.
"""
