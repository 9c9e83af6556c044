"""A broker's log directories as they lie on a disk: which logs there are, of which files, and what is known of them."""
