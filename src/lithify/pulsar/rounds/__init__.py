"""What the tasks of a Pulsar round do: which messages remain, in bounded memory, and the new view (C54)."""
