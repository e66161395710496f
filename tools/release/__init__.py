"""What a release is made of: building it, looking into it, saying what it is. `tools/release_check.py` runs it all."""
