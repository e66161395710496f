"""Warm starts of rehearsals: a template process per environment is kept ready, from which processes are forked.

What happens in the template and its forks is `ranksafe_rehearsal.warm`; here is decided what it imports, when it is
started, and when it is asked.
"""

from __future__ import annotations

from ranksafe.runs.warm.start import WarmStart
from ranksafe.runs.warm.templates import LivingTemplate, end_templates, living_templates

__all__ = ["LivingTemplate", "WarmStart", "end_templates", "living_templates"]
