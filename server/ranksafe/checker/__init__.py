"""Meaning and launch context to findings: the rule protocol, the registry, suppression, configuration."""
