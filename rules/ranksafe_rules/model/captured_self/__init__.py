"""RS511 captured-self."""
