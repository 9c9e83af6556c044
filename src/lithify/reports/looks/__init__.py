"""What is shown to a person: the layout of logs, records and keys, running cleaners."""
