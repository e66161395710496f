"""RS501 num-items-under-data-parallel."""
