"""What should happen: pure functions of (state, settings, now). Nothing here does anything."""
