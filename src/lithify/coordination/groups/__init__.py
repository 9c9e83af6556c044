"""Consumer groups: members that share the partitions of a topic and commit how far they have read (C58)."""
