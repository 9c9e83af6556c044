"""Runs rounds, proofs and copies on Spark; never commits."""
