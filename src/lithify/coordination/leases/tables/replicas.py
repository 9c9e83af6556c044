"""The tables of replicas: definitions, what daemons have noted of topics, and the leases of daemons.

lithify_replicas         scope, name (primary key)                      stream   topic   target   ...
lithify_replica_topics   scope, replica, stream, topic (primary key)    standing   version   ...
lithify_replica_leases   name (primary key)                             owner   beats
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, MetaData, String, Table

from lithify.coordination.leases.sql_coordination import table_of_leases

REPLICA_LEASES = table_of_leases("lithify_replica_leases")
_METADATA = MetaData()
REPLICAS = Table(
    "lithify_replicas",
    _METADATA,
    Column("scope", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("stream", String, nullable=False),
    Column("topic", String),
    Column("target", String, nullable=False),
    Column("target_scope", String, nullable=False),
    Column("throttle_bytes", BigInteger),
    Column("paused", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("sync_groups", Boolean, nullable=False),
    Column("compact", Boolean, nullable=False),
)
PROGRESS = Table(
    "lithify_replica_topics",
    _METADATA,
    Column("scope", String, primary_key=True),
    Column("replica", String, primary_key=True),
    Column("stream", String, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("standing", String, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Column("daemon", String, nullable=False),
    Column("version", BigInteger),
    Column("behind_since_ms", BigInteger),
    Column("copied_bytes", BigInteger, nullable=False),
    Column("to_copy_bytes", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("error", String),
    Column("retry_ms", BigInteger),
    Column("groups_error", String),
)
