"""The knowledge: one folder per rule, grouped by area. Nothing imports these; the registry finds them."""
