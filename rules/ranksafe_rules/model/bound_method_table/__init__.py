"""RS510 bound-method-table."""
