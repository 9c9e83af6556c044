"""`produce`, `consume`, `table`: records in and out, and the text they have."""
