"""RS4xx: collectives that not all ranks perform in the same order, and what is like them."""
