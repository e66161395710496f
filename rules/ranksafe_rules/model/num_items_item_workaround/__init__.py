"""RS502 num-items-item-workaround."""
