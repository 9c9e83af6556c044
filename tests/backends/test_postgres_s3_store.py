"""The store over PostgreSQL and S3 does what every store must, also from many processes at once."""

from __future__ import annotations

from store.conformance import StoreConformance


class TestStoreOverPostgresAndS3(StoreConformance):
    """`place` is that of the section."""
