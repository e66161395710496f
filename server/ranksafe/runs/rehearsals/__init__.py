"""What the end of a rehearsal means: the script's failure, the simulation's, or one in doubt."""
