"""What verbs print as tables: names of columns, their formats, notes; for terminals and for notebooks."""
