"""Keeps what a rehearsal does away from the user's files and from the network.

On Linux a rehearsal runs in namespaces of its own, without root: its files are overlays (`file_tree`), its network has
the loopback interface only, and its processes end together (`enter`, `first_process`). Memory and disk are bounded
(`bounds`). Elsewhere only the stand-ins inside the processes act (``inject/ranksafe_rehearsal/outside``), and the
outcome says so.
"""

from __future__ import annotations

from ranksafe.rehearsal.isolation.availability import outlook, probe
from ranksafe.rehearsal.isolation.events import EVENTS_FILE
from ranksafe.rehearsal.isolation.memory import host_memory_bound
from ranksafe.rehearsal.isolation.node import node_name, on_node
from ranksafe.rehearsal.isolation.plan import IsolationPlan, plan_isolation
from ranksafe.rehearsal.isolation.specification import NOT_ENTERED

__all__ = [
    "EVENTS_FILE",
    "NOT_ENTERED",
    "IsolationPlan",
    "host_memory_bound",
    "node_name",
    "on_node",
    "outlook",
    "plan_isolation",
    "probe",
]
