"""Start a script on a target, watch it, collect evidence, explain it. The only code of ours that starts processes."""
