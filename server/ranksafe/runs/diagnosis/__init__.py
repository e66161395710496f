"""From what a log says, rank by rank, to the evidence that a run leaves, and on to its explanation."""
