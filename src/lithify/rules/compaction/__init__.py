"""What a round should do: pure functions of (state, settings, now), without side effects."""
