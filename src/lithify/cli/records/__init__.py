"""`produce`, `consume`, `table`: appending and reading records, and their form as text."""
