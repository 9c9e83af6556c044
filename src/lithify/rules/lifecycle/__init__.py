"""What commits other than a round do to a log: admission, cuts, undo, changed settings, expiry, sweep, repair."""
