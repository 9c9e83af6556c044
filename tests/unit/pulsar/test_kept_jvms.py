"""JVMs that are lent again: only those that are idle, of the same kind, alive and of this process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from lithify.errors import BrokerError, UnusableEnvironmentError
from lithify.pulsar.bookkeeper import JavaParts, LedgerWriter, MetadataStore, Replication, kept_jvms
from lithify.pulsar.bookkeeper.kept_jvms import lent_jvm
from lithify.pulsar.bookkeeper.ledger_jvm import LedgerJvm
from support.servers.tcp_proxy import wait_until

Parts = Callable[[str], JavaParts]

SERVES = r"printf '\000\000\000\005\000LITH'; exec cat >/dev/null"
REFUSES = r"printf '\000\000\000\005\000LITH'; printf '\000\000\000\004\001bad'; exec cat >/dev/null"


@pytest.fixture(autouse=True)
def none_of_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kept_jvms, "_kept", [])
    yield
    for kept in list(kept_jvms._kept):
        kept_jvms._end(kept)


@contextmanager
def lent(parts: JavaParts, path: str = "/ledgers") -> Iterator[LedgerJvm]:
    with lent_jvm(parts, "uri", path, 1) as jvm:
        yield jvm


def once(parts: JavaParts, path: str = "/ledgers") -> LedgerJvm:
    with lent(parts, path) as jvm:
        return jvm


def test_one_that_is_idle_is_lent_again(jvm_script: Parts) -> None:
    parts = jvm_script(SERVES)
    first = once(parts)
    assert once(parts) is first and first.is_usable


def test_two_at_once_are_two(jvm_script: Parts) -> None:
    parts = jvm_script(SERVES)
    with lent(parts) as one, lent(parts) as other:
        assert one is not other
    assert {once(parts), once(parts)} <= {one, other}


def test_one_of_another_kind_or_process_is_not_lent(jvm_script: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = jvm_script(SERVES)
    first = once(parts)
    assert once(parts, "/elsewhere") is not first
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: -1)
        assert once(parts) is not first


def test_one_whose_work_failed_is_ended(jvm_script: Parts) -> None:
    with pytest.raises(BrokerError, match="bad"), lent(jvm_script(REFUSES)) as jvm:
        jvm.ask(b"E")
    assert not jvm.is_usable and not kept_jvms._kept


def test_one_that_was_left_in_the_middle_is_ended(jvm_script: Parts) -> None:
    parts = jvm_script(SERVES)

    def pages() -> Iterator[LedgerJvm]:
        with lent(parts) as jvm:
            yield jvm

    reading = pages()
    jvm = next(reading)
    reading.close()
    assert not jvm.is_usable and not kept_jvms._kept


def test_a_writer_that_leaves_answers_unread_ends_its_jvm(jvm_script: Parts) -> None:
    with LedgerWriter(jvm_script(SERVES), MetadataStore.at("zk:here"), Replication(1, 1, 1), 1) as writer:
        writer.append([b"entry"])
    assert not kept_jvms._kept


def test_one_that_died_meanwhile_is_replaced(jvm_script: Parts) -> None:
    parts = jvm_script(SERVES)
    first = once(parts)
    os.kill(first._process.pid, signal.SIGKILL)
    wait_until(lambda: not first.is_usable, "it still runs")
    second = once(parts)
    assert second is not first and second.is_usable


def test_one_that_idles_too_long_is_ended(jvm_script: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_jvms, "KEPT_S", 0.05)
    jvm = once(jvm_script(SERVES))
    wait_until(lambda: not jvm.is_usable, "it still runs")
    with pytest.raises(UnusableEnvironmentError, match="has ended"):
        jvm.ask(b"E")


def test_no_more_than_so_many_are_kept(jvm_script: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_jvms, "KEPT_AT_MOST", 1)
    parts = jvm_script(SERVES)
    with lent(parts) as one, lent(parts) as other:
        pass
    assert [one.is_usable, other.is_usable] == [False, True]
