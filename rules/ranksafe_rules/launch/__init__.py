"""Rules about how a script is started."""
