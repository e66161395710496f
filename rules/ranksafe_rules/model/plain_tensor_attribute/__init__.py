"""RS513 plain-tensor-attribute."""
