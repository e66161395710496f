"""RS211 captured-device."""
