"""What verbs do: append, read, compact, commit. Uses ports, never their implementations."""
