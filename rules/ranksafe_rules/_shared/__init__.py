"""What several rules need to know and no single rule owns."""
