"""Pulsar's own Java client, in a process of its own: what it reads, and transactions, which Python's has not."""

from __future__ import annotations

import base64
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from support.processes.programs import SHORT_LIVED
from support.pulsar.bookies import java_parts
from support.pulsar.server import JVM, PulsarServer

PROGRAM = Path(__file__).with_name("JavaClient.java")
RUN_S = 120.0


class JavaMessage(NamedTuple):
    """As a reader gets it."""

    ledger: int
    entry: int
    batch_index: int
    key: bytes | None
    value: bytes


def java_read(server: PulsarServer, topic: str, *, compacted: bool) -> list[JavaMessage]:
    """All that a reader gets from the earliest message on."""
    lines = _run("read", server.service_url, topic, "compacted" if compacted else "plain").splitlines()
    return [_message(line) for line in lines]


def java_transactions(server: PulsarServer, topic: str, *each: str) -> None:
    """`commit:a,b`, `abort:a,b` or `open:a`: a transaction with these values, one message each, one after the other."""
    _run("transactions", server.service_url, topic, *each)


def _message(line: str) -> JavaMessage:
    ledger, entry, batch_index, key, value = line.split(" ")
    decoded = None if key == "-" else base64.b64decode(key)
    return JavaMessage(int(ledger), int(entry), int(batch_index), decoded, base64.b64decode(value[1:]))


def _run(*arguments: str) -> str:
    parts = java_parts()
    logging = PROGRAM.with_name("client-log4j2.properties")
    command = [str(parts.java), *SHORT_LIVED, "-Xmx256m", *JVM, f"-Dlog4j2.configurationFile={logging}"]
    command += ["-cp", os.pathsep.join((parts.class_path(), str(PROGRAM.parent)))]
    command += ["org.codehaus.janino.SimpleCompiler", str(PROGRAM), "JavaClient", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
