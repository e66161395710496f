"""ranksafe: what thread-safe means for threads, rank-safe means for the ranks of a training job."""

__version__ = "0.1.0"
