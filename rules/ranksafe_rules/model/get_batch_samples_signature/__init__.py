"""RS503 get-batch-samples-signature."""
