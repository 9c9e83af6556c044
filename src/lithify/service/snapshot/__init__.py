"""Consumers that read the compacted part from the lake and continue live in the cluster that it was copied from."""
