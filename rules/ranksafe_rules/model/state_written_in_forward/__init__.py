"""RS515 state-written-in-forward."""
