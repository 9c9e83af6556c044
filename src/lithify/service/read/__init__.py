"""Reading topics, by one reader or by many tasks (C2, C7)."""
