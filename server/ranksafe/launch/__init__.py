"""How scripts are started: settings, command-line words, installed versions. Reads files, starts nothing."""
