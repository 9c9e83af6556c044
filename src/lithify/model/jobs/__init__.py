"""Standing jobs: command lines that gateways run all the time, or again and again."""
