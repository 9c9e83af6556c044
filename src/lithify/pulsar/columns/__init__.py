"""Many entries at once: their messages as columns, and batches without some of their messages."""
