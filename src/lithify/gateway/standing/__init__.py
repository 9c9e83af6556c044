"""Standing jobs: which of them this gateway runs, and their processes."""
