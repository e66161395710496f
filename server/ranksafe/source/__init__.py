"""Text to tree: positions, documents, half-typed code, notebooks. Knows nothing of rules, rules' meaning or editors."""
