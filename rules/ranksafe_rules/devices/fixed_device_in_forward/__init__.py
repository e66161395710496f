"""RS210 fixed-device-in-forward."""
