"""Since when tombstones are covered, and which deletes rounds have dropped (C18, C19, C49)."""
