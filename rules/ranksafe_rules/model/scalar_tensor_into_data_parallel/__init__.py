"""RS505 scalar-tensor-into-data-parallel."""
