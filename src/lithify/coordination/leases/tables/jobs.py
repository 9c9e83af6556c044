"""The tables of standing jobs: what they are, what gateways have noted of them, and the leases of gateways.

lithify_standing_jobs         scope, name (primary key)   arguments   every_ms   ...   gateway   running   ...
lithify_standing_job_leases   name (primary key)          owner       beats
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, MetaData, String, Table

from lithify.coordination.leases.sql_coordination import table_of_leases

JOB_LEASES = table_of_leases("lithify_standing_job_leases")
JOBS = Table(
    "lithify_standing_jobs",
    MetaData(),
    Column("scope", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("arguments", String, nullable=False),
    Column("every_ms", BigInteger),
    Column("paused", Boolean, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("gateway", String),
    Column("running", Boolean),
    Column("since_ms", BigInteger),
    Column("seen_ms", BigInteger),
    Column("next_ms", BigInteger),
    Column("failures", BigInteger),
    Column("exit_code", BigInteger),
    Column("error", String),
    Column("error_code", String),
    Column("report", String),
)
"""The columns from `gateway` on are null until a gateway has begun a run."""
