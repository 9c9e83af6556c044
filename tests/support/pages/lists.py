"""Which test runs the blocks of each page, and the few that none can run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Mapping

from support.pages.text import RUNNABLE, blocks

EMBEDDED = (
    "docs/data-in/fenced-writer.md",
    "docs/data-in/files-and-pipes.md",
    "docs/data-in/spark.md",
    "docs/data-out/consumer-groups.md",
    "docs/data-out/feed-a-cache-an-index-a-warehouse.md",
    "docs/data-out/migrate-away.md",
    "docs/data-out/query-the-latest.md",
    "docs/data-out/typed-table.md",
    "docs/operate/cleaners.md",
    "docs/operate/monitor.md",
    "docs/operate/plan-and-undo.md",
    "docs/operate/profile-a-round.md",
    "docs/operate/retention-and-cuts.md",
    "docs/operate/settings-and-streams.md",
    "docs/operate/spark-clusters.md",
    "docs/operate/standing-jobs.md",
    "docs/operate/tokens-and-roles.md",
    "docs/operate/versions-and-space.md",
    "docs/recover/fail-over.md",
    "docs/recover/repair.md",
    "docs/recover/replicas.md",
    "docs/reference/python.md",
    "docs/reference/settings.md",
    "docs/start/first-steps-in-python.md",
    "docs/understand/deletes.md",
    "docs/understand/side-by-side.md",
)
"""Pages that need no server: `tests/examples` runs them, each in an empty folder."""

KAFKA = (
    "docs/data-in/cut-over.md",
    "docs/data-in/ingest-kafka.md",
    "docs/data-out/hydrate-and-publish.md",
    "docs/data-out/start-a-consumer.md",
    "docs/start/from-kafka-to-the-lake.md",
)
"""Pages that need a broker: `tests/kafka` runs them."""

PULSAR = (
    "docs/data-in/ingest-pulsar.md",
    "docs/operate/live-pulsar.md",
)
"""Pages that need a cluster of Pulsar: `tests/pulsar` runs them."""

RUN_BY: Mapping[tuple[str, str], str] = {
    ("README.md", "console"): "tests/examples/test_documents.py",
    ("README.md", "python"): "tests/examples/test_pages.py",
    ("docs/data-in/over-http.md", "python"): "tests/gateway/records/test_page.py",
    ("docs/data-in/over-http.md", "sh"): "tests/gateway/records/test_page.py",
    ("docs/data-out/kafka-clients.md", "python"): "tests/gateway/test_kafka_listener.py",
    ("docs/data-out/typed-table.md", "python"): "tests/examples/test_decode_values.py",
    ("docs/operate/profile-a-round.md", "python"): "tests/examples/test_documents.py",
    ("docs/operate/upgrade.md", "console"): "tests/examples/test_pages.py",
    ("docs/start/test-your-programs.md", "python"): "tests/examples/test_documents.py",
}
"""Blocks of a language that a test of their own runs, by page."""

NOT_RUN: Mapping[str, str] = {
    r"git clone|scripts/setup|export PATH=|\bpip |requirements-\w+\.lock|docker build": "it installs packages",
    r"docker compose|localhost:7660": "containers; tests/trial/test_trial.py runs the same programs without them",
    r"--catalog |open\(catalog=|load_catalog\(| --to prod ": "a catalog of the reader's; tests/backends has several",
    r"spark-submit|spark-class|spark\.master=spark:|^# lithify_job\.py": "a cluster; tests/cluster has one",
    r"\blithify\.(default|shop)\.": "Trino, or a Spark for which Iceberg has a runtime",
    r"duckdb_extension": "extensions in an environment of their own; tests/engines runs these programs",
    r"LITHIFY_GATEWAY=": "a gateway that runs; tests/gateway has one",
    r"gateway\.example": "a gateway for other machines, which runs until it is stopped; tests/gateway has one with TLS",
    r"\bkcat ": "kcat, a client of Kafka; tests/kcat has the same reads",
    r"--kafka-listen": "a gateway, which runs until it is stopped; tests/gateway/test_kafka_listener.py has one",
    r"quarantine release": "a log whose rounds fail; tests/cli/rounds/test_quarantine.py has one",
    r"spark-sql |protoc |keytool ": "a program that is not ours, on files of the reader's",
    r"-conf-file |new:9092|old:9092|--replication 2,2,2": "a cluster of several nodes, or a secured one",
    r"kafka-(consumer-groups|get-offsets)\.sh|pulsar-admin ": "a tool of Kafka or Pulsar",
    r"lithify kafka |kafka-[a-z-]+\.sh|broker:9092": "a Kafka broker; tests/kafka runs the pages about Kafka",
    r"lithify pulsar |persistent://": "a Pulsar; tests/pulsar runs the pages about Pulsar",
}
"""What a block of a page has that no test here can run, and why; the whole block is not run."""

TOOLS = ("jq", "sqlite3")
"""Programs that pages use, and that a machine may lack: what uses them is not run there."""


def reason_not_to_run(text: str, servers: tuple[str, ...] = ()) -> str:
    """Why a block of a page is not run; empty if it is. `servers` are there: "Kafka", "Pulsar"."""
    for pattern, reason in NOT_RUN.items():
        if re.search(pattern, text, re.MULTILINE) and not any(reason.startswith(f"a {server}") for server in servers):
            return reason
    missing = [tool for tool in TOOLS if re.search(rf"\b{tool} ", text) and shutil.which(tool) is None]
    return f"{missing[0]} is not installed" if missing else ""


def unrun(page: str, walked: Collection[str]) -> list[str]:
    """The blocks of a page that no test runs, and for which no list gives a reason."""
    runnable = [block for block in blocks(page) if block.language in RUNNABLE]
    left = [block for block in runnable if page not in walked and (page, block.language) not in RUN_BY]
    return [block.text for block in left if not reason_not_to_run(block.text)]
