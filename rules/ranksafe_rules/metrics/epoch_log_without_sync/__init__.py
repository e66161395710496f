"""RS703: epoch-log-without-sync."""
