"""Pulsar's own Java client, in a process of its own: what it reads, and transactions, which Python's has not.

The first request starts the process, which takes seconds and serves all later ones; it ends with this program.
"""

from __future__ import annotations

import atexit
import base64
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from threading import Timer
from typing import IO, NamedTuple

from support.processes.programs import SHORT_LIVED
from support.pulsar.bookies import java_parts
from support.pulsar.server import JVM, PulsarServer
from support.pulsar.timers import coarse_timers

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


def _run(*request: str) -> str:
    """What it answers."""
    process, errors = _process()
    assert process.stdin and process.stdout
    watch = Timer(RUN_S, process.kill)
    watch.start()
    try:
        process.stdin.write("\t".join(request) + "\n")
        process.stdin.flush()
        answer = ""
        while (line := process.stdout.readline()) != ".\n":
            assert line, f"{request}: {_said(errors)}"
            answer += line
    except BaseException:
        process.kill()
        _process.cache_clear()
        raise
    finally:
        watch.cancel()
    return answer


@cache
def _process() -> tuple[subprocess.Popen[str], IO[bytes]]:
    """The program, and the file with what it says on stderr."""
    parts = java_parts()
    logging = PROGRAM.with_name("client-log4j2.properties")
    command = [str(parts.java), *SHORT_LIVED, "-Xmx256m", *JVM, f"-Dlog4j2.configurationFile={logging}"]
    command += ["-cp", os.pathsep.join((parts.class_path(), str(PROGRAM.parent)))]
    command += ["org.codehaus.janino.SimpleCompiler", str(PROGRAM), "JavaClient"]
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
    with coarse_timers():
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
    atexit.register(_end, process, errors)
    return process, errors


def _end(process: subprocess.Popen[str], errors: IO[bytes]) -> None:
    process.kill()
    process.communicate()  # closes its pipes
    errors.close()


def _said(errors: IO[bytes]) -> str:
    errors.seek(0)
    return errors.read().decode(errors="replace")[-5000:]
