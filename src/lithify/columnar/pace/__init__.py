"""How fast tasks may move bytes (C40)."""
