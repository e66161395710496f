"""RS001: a suppression comment that silences nothing. Built in, because it is about ranksafe's own comments."""
