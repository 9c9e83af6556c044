"""Records as text, and as the columns that `append` takes and a reader returns."""
