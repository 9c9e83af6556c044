"""Since when tombstones are covered, and when deletes went (C18, C19, C49)."""
