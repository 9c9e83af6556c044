"""What only some verbs need. It is optional as long as nothing that is set names it."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec

from lithify.cli.doctor.check import Check
from lithify.errors import ConnectorError, LithifyError
from lithify.errors.extras import GATEWAY, KAFKA, KAFKA_FILES, POSTGRES, POSTGRES_DRIVERS

AIOKAFKA = "aiokafka"


def kafka() -> Check:
    """Kafka's client for Python, and Spark's connector; without a folder the first `kafka ingest` fetches that."""
    from lithify.kafka_client.client import client
    from lithify.spark.kafka.connector import JARS_VARIABLE, NEEDED, checked, find_connector
    from lithify.spark.kafka.fetched import fetched_folder

    try:
        client()
    except ConnectorError as error:
        needing = "which only `lithify kafka ...` and consumers that continue in Kafka need"
        named = bool(os.environ.get(JARS_VARIABLE))  # so Kafka is to be used
        return Check("Kafka", False, f"{error.message}, {needing}", KAFKA, optional=not named)
    connector = find_connector()
    try:
        note = "" if connector.folder is None else checked(connector)
    except LithifyError as error:
        return Check("Kafka", False, error.message, error.hint)
    if connector.folder is None:
        there = fetched_folder(connector.package)
        fetched = (there.parent / "complete").exists()
        when = f"in {there}" if fetched else "fetched from Maven by the first `kafka ingest`"
        return Check("Kafka", True, f"{connector.package}, {when}")
    return Check("Kafka", True, note or f"{', '.join(NEEDED)} in {connector.folder}")


def aiokafka() -> Check:
    """What reads and writes Kafka's segments. Reading alone needs none of its codecs."""
    if find_spec(AIOKAFKA) is None:
        detail = "it is not installed, which only `lithify kafka import` needs"
        return Check(AIOKAFKA, False, detail, KAFKA_FILES, optional=True)
    from aiokafka.codec import has_lz4, has_snappy, has_zstd
    from aiokafka.record.default_records import DefaultRecordBatch

    lacking = [name for name, has in (("snappy", has_snappy), ("lz4", has_lz4), ("zstd", has_zstd)) if not has()]
    lacking += [] if "_crecords" in DefaultRecordBatch.__module__ else ["its compiled part"]
    if lacking:
        detail = f"{version(AIOKAFKA)}, without {', '.join(lacking)}"
        return Check(AIOKAFKA, False, detail, KAFKA_FILES, optional=True)
    return Check(AIOKAFKA, True, version(AIOKAFKA))


def postgres() -> Check:
    """The driver of PostgreSQL, for a catalog or leases there."""
    for driver in POSTGRES_DRIVERS:
        with suppress(ImportError):
            return Check("PostgreSQL", True, f"{driver} {import_module(driver).__version__}")
    detail = f"{POSTGRES_DRIVERS[0]} is not installed, which only catalogs and leases in PostgreSQL need"
    return Check("PostgreSQL", False, detail, POSTGRES, optional=True)


def gateway() -> Check:
    """What a gateway and `--metrics-port` need."""
    missing = [module for module in ("starlette", "uvicorn", "prometheus_client") if find_spec(module) is None]
    if not missing:
        return Check("gateway", True, f"Starlette {version('starlette')}, uvicorn {version('uvicorn')}")
    detail = f"{', '.join(missing)} not installed, which only gateways and `--metrics-port` need"
    return Check("gateway", False, detail, GATEWAY, optional=True)


def pulsars_jars() -> Check:
    """Pulsar's jars, which only `pulsar compact` needs."""
    from lithify.spark.pulsar.ledger_opener import JARS_VARIABLE, find_parts

    if not os.environ.get(JARS_VARIABLE):
        hint = f"pass --jars, or set {JARS_VARIABLE}"
        return Check("Pulsar", False, "no jars are set; only `lithify pulsar compact` needs them", hint, True)
    try:
        parts = find_parts(None)
    except LithifyError as error:
        return Check("Pulsar", False, error.message, error.hint)
    return Check("Pulsar", True, f"BookKeeper's and Pulsar's clients in {parts.pulsar_jars}")
