"""Programs in the place of the JVM that hang, die, print rubbish or take no input: each is a clear error, in time."""

from __future__ import annotations

import os
import time

import pytest

from lithify.errors import BrokerError, InvalidSettingError, LithifyError, UnusableEnvironmentError
from lithify.pulsar.bookkeeper import MetadataStore
from lithify.pulsar.bookkeeper.ledger_jvm import LedgerJvm

GREETS = r"printf '\000\000\000\005\000LITH';"


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("exit 3", UnusableEnvironmentError, "it has died"),
        (
            "echo Error: no class >&2; for n in $(seq 50); do echo '\tat a.b.c' >&2; done; exit 1",
            UnusableEnvironmentError,
            "no class .check that the jars in",
        ),
        ("echo Unrecognized option >&2; exit 1", UnusableEnvironmentError, "Unrecognized option"),
        ("echo Hello, world", UnusableEnvironmentError, "something other than a greeting"),
        (r"printf '\000\000\000\005\000LIMB'", UnusableEnvironmentError, "another version"),
        (r"printf '\000\000\000\003\001no'", BrokerError, "the client of BookKeeper cannot start: no"),
        (r"printf '\000\000\000\005\000LI'", UnusableEnvironmentError, "it has died"),
    ],
)
def test_a_jvm_that_does_not_start_is_an_error(jvm_script, script, kind, said):
    with pytest.raises(kind, match=said):
        LedgerJvm(jvm_script(script), "uri", "/ledgers", 1)


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("exit 0", UnusableEnvironmentError, "it has died"),
        ("exec sleep 100", UnusableEnvironmentError, "does not answer"),
        (
            "echo '12:55 - INFO  - [main] - os.arch=amd64' >&2; echo '12:55 - WARN - ill' >&2; exit 0",
            UnusableEnvironmentError,
            "its last lines are: 12:55 - WARN - ill .*starts another JVM",
        ),
        (r"exec 0<&-; exec sleep 100", UnusableEnvironmentError, "it has died|does not answer"),
        (r"head -c 5 >/dev/null; printf '\377\377\377\377'", UnusableEnvironmentError, "a size of 4294967295 bytes"),
        (r"head -c 5 >/dev/null; printf '\000\000\000\000'", UnusableEnvironmentError, "a size of 0 bytes"),
        (r"head -c 5 >/dev/null; printf '\000\000\000\004\001bad'; cat >/dev/null", BrokerError, "bad"),
    ],
)
def test_a_jvm_that_fails_later_is_an_error_within_its_time(jvm_script, script, kind, said):
    jvm = LedgerJvm(jvm_script(GREETS + script), "uri", "/ledgers", 0.2)
    begun_s = time.monotonic()
    with pytest.raises(kind, match=said):
        jvm.ask(b"E", bytes(8 << 20) if "sleep" in script else b"")
    assert time.monotonic() - begun_s < 10
    jvm.end()
    with pytest.raises(UnusableEnvironmentError, match="has ended"):
        jvm.ask(b"E")


def test_a_jvm_that_does_not_end_is_killed(jvm_script, monkeypatch):
    monkeypatch.setattr("lithify.pulsar.bookkeeper.ledger_jvm.END_S", 0.2)
    jvm = LedgerJvm(jvm_script(GREETS + "exec sleep 100"), "uri", "/ledgers", 1)
    jvm.end()
    with pytest.raises(ProcessLookupError):
        os.kill(jvm._process.pid, 0)


def test_a_ctrl_c_is_for_the_program_alone(jvm_script):
    """C55: the terminal sends it to a whole process group, and the program may have a ledger to delete."""
    jvm = LedgerJvm(jvm_script(GREETS + "exec sleep 100"), "uri", "/ledgers", 1)
    try:
        assert os.getpgid(jvm._process.pid) == jvm._process.pid != os.getpgid(0)
    finally:
        jvm._process.kill()
        jvm.end()


@pytest.mark.parametrize(
    "url", ["", "zk: here", "zk:\x00", "memory:x", "rocksdb:///data", "metadata-store:rocksdb:///data"]
)
def test_a_metadata_store_that_no_program_but_the_broker_can_reach_is_refused(url):
    """A client of it would make an empty one of that name, in this machine's folders."""
    with pytest.raises(InvalidSettingError, match="metadata store"):
        MetadataStore.at(url)
    with pytest.raises(LithifyError, match="metadata store"):
        MetadataStore.of({"metadataStoreUrl": url})
