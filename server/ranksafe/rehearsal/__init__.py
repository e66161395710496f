"""Simulated GPUs: let a script run, unmodified, as if the machine had N CUDA devices.

`settings` says what can be chosen, `torch_build` and `native` make a torch installation carry the devices, `inject` is
what runs inside the user's processes, `isolation` keeps what they do away from the user's files and the network. How
such a run is started and explained is `ranksafe.runs`' part (target ``simulated:N``).
"""
