"""The settings of a topic: the table of them, their values, units and secrets."""
