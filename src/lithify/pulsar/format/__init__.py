"""Entries byte by byte: metadata and payload, batches, codecs, and the frames of compacted ledgers."""
