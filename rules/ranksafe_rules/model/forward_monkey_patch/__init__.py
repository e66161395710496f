"""RS512 forward-monkey-patch."""
