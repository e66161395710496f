"""Runs on another host, seen from here: what is known of the host, what is sent, how the run is followed."""
