"""RS514 parameters-lookup-in-forward."""
