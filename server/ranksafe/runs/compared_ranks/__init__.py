"""What shows only where ranks are compared: failures that no error tells of, and where the ranks' ways parted."""
