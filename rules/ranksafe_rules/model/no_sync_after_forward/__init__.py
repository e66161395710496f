"""RS534 no-sync-after-forward."""
