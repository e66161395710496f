"""Tree to meaning: names, scopes, classes, values, guards, the project index. Knows nothing of rules."""
