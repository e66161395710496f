"""What loops run over when the project says it: `generators` runs it, `steps` counts what it hands out."""
