"""Replica daemons as processes: ended, killed, frozen, two at once, with targets that come and go (C63, C65)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import lithify
from lithify import Lake, Record
from lithify.reports.replicas.status import ReplicaStatus
from lithify.service.replica.copied_files import COPIES_AT_ONCE
from support.processes.cleaner_process import WAIT_S, ReplicaProcess
from support.processes.frozen import freeze as stop
from support.servers.tcp_proxy import wait_until

pytestmark = [pytest.mark.kills, pytest.mark.timeout(600)]

STOPS_WITHIN_S = 10
LEASE = "3s"
VALUE_BYTES = 4_000


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lithify.open(str(tmp_path / "lake"))


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / "backup"


def fed(lake: Lake, topic: str = "orders", batches: int = 4, records: int = 100) -> None:
    """A file for each batch."""
    if topic not in map(str, (known.topic_name for known in lake.topics())):
        lake.create_topic(topic)
    for _ in range(batches):
        values = (os.urandom(VALUE_BYTES) for _ in range(records))
        lake.topic(topic).append([Record(key=b"%d" % n, value=value) for n, value in enumerate(values)])


def daemon(lake: Lake, *more: str) -> ReplicaProcess:
    folder = lake.warehouse.store.source.root  # type: ignore[attr-defined]
    return ReplicaProcess("--warehouse", folder, "--interval", "300ms", "--lease", LEASE, *more)


def contents(place: Lake | Path, topic: str = "orders") -> list[Record]:
    read = place if isinstance(place, Lake) else lithify.open(str(place))
    return list(read.topic(topic).reader(0))


def copies(backup: Path) -> set[Path]:
    return set(backup.rglob("*-of-*.parquet"))


def waited(for_what: Callable[[], object]) -> None:
    wait_until(for_what, "it does not come", WAIT_S)


def freeze(frozen: ReplicaProcess, lake: Lake) -> None:
    catalog = lake.warehouse.store.source.root.removeprefix("file://") + "/catalog.db"  # type: ignore[attr-defined]
    stop(frozen.process, Path(catalog))


def only(found: Iterable[ReplicaStatus]) -> ReplicaStatus:
    (status,) = found
    return status


def caught_up(lake: Lake) -> bool:
    return all(status.lag_ms == 0 and status.state == "replicating" for status in lake.replicas().status())


def test_it_follows_what_is_appended_and_ends_in_order(lake: Lake, backup: Path) -> None:
    fed(lake)
    lake.replicas().add("orders", str(backup))
    with daemon(lake) as running:
        running.wait_for_kind("copied")
        for _ in range(3):
            fed(lake, batches=1)
            version = lake.topic("orders").state().version
            running.wait_for(lambda event, v=version: event["event"] == "copied" and event["version"] == v)
        waited(lambda: caught_up(lake))
        begun = time.monotonic()
        running.signal(signal.SIGTERM)
        assert running.ended() == 0
        assert time.monotonic() - begun < STOPS_WITHIN_S
        assert (running.events[-1]["event"], running.events[-1]["reason"]) == ("stopped", "SIGTERM")
        assert running.told("failed") == running.told("trouble") == []
    assert contents(backup) == contents(lake)
    assert only(lake.replicas().status()).state == "waiting", "no daemon runs"


def test_sigterm_in_a_copy_names_nothing_and_the_next_one_uses_what_it_has_copied(lake: Lake, backup: Path) -> None:
    fed(lake, batches=12)
    lake.replicas().add("orders", str(backup), throttle="400KB/s")
    with daemon(lake) as running:
        waited(lambda: len(copies(backup)) > COPIES_AT_ONCE)  # so one is complete
        assert only(lake.replicas().status()).replica_version is None
        begun = time.monotonic()
        running.signal(signal.SIGTERM)
        assert running.ended() == 0
        assert time.monotonic() - begun < STOPS_WITHIN_S
    assert [event["event"] for event in running.events[-2:]] in (["abandoned", "stopped"], ["copied", "stopped"])
    lake.replicas().edit("orders-to-backup", throttle=None)
    with daemon(lake, "--once") as running:
        assert running.ended() == 0
        assert sum(event["files_reused"] for event in running.told("copied")) >= 1
    assert contents(backup) == contents(lake)


def test_a_daemon_that_is_killed_in_a_copy_is_replaced(lake: Lake, backup: Path) -> None:
    fed(lake, batches=12)
    lake.replicas().add("orders", str(backup), throttle="400KB/s")
    with daemon(lake, "--id", "first") as first:
        waited(lambda: len(copies(backup)) > COPIES_AT_ONCE)  # so one is complete
        waited(lambda: only(lake.replicas().status()).state == "copying")
        first.signal(signal.SIGKILL)
    lake.replicas().edit("orders-to-backup", throttle="100MB/s")
    with daemon(lake, "--id", "second") as second:
        copied = second.wait_for_kind("copied")
        assert copied["files_reused"] >= 1
        waited(lambda: caught_up(lake))
    assert contents(backup) == contents(lake)


def test_a_frozen_daemon_is_replaced_and_overwrites_nothing_when_it_continues(lake: Lake, backup: Path) -> None:
    fed(lake)
    lake.replicas().add("orders", str(backup), throttle="400KB/s")
    with daemon(lake, "--id", "first") as first, daemon(lake, "--id", "second") as second:
        waited(lambda: first.told("copying") or second.told("copying"))
        frozen, other = (first, second) if first.told("copying") else (second, first)
        freeze(frozen, lake)
        lake.replicas().edit("orders-to-backup", throttle=None)
        other.wait_for_kind("copied")
        fed(lake, batches=1)
        waited(lambda: only(lake.replicas().status()).lag_ms == 0)
        frozen.signal(signal.SIGCONT)
        frozen.wait_for(lambda event: event["event"] in ("abandoned", "copied"))
        fed(lake, batches=1)
        waited(lambda: caught_up(lake))
        assert frozen.told("failed") == other.told("failed") == []
    assert contents(backup) == contents(lake)
    assert all(report.clean for report in lake.replicas().verify("orders-to-backup"))


def test_two_daemons_share_the_topics(lake: Lake, backup: Path) -> None:
    for number in range(8):
        fed(lake, f"web/t{number}", batches=2, records=50)
    lake.replicas().add("web/", str(backup), throttle="1MB/s")
    with daemon(lake, "--threads", "2") as first, daemon(lake, "--threads", "2") as second:
        waited(lambda: caught_up(lake))
        done = [[event["topic"] for event in one.told("copied")] for one in (first, second)]
        assert sorted(done[0] + done[1]) == [f"web/t{number}" for number in range(8)], "each once"
        assert all(done), done
        assert first.told("failed") == second.told("failed") == []
    for number in range(8):
        assert contents(backup, f"web/t{number}") == contents(lake, f"web/t{number}")


@pytest.mark.parametrize("verb", ["pause", "remove"])
def test_a_replica_that_is_paused_or_removed_while_it_copies_names_nothing(lake: Lake, backup: Path, verb: str) -> None:
    fed(lake, batches=12)
    replicas = lake.replicas()
    replicas.add("orders", str(backup), throttle="400KB/s")
    with daemon(lake) as running:
        waited(lambda: len(copies(backup)) > COPIES_AT_ONCE)  # so one is complete
        begun = time.monotonic()
        getattr(replicas, verb)("orders-to-backup")
        stopped = running.wait_for_kind("abandoned")
        assert time.monotonic() - begun < STOPS_WITHIN_S
        assert stopped["reason"] == "the replica was paused or removed"
        if verb == "pause":
            assert only(replicas.status()).state == "paused"
            assert only(replicas.status()).replica_version is None
            replicas.edit("orders-to-backup", throttle=None)
            replicas.resume("orders-to-backup")
        else:
            assert replicas.status() == ()
            replicas.add("orders", str(backup))
        assert running.wait_for_kind("copied")["files_reused"] >= 1
        waited(lambda: caught_up(lake))
    assert contents(backup) == contents(lake)


def test_a_target_that_goes_away_comes_back_and_the_others_are_kept_up(
    lake: Lake, backup: Path, tmp_path: Path
) -> None:
    fed(lake, batches=1)
    replicas = lake.replicas()
    replicas.add("orders", str(backup))
    replicas.add("orders", str(tmp_path / "second"))
    with daemon(lake) as running:
        waited(lambda: caught_up(lake))
        away = tmp_path / "away"
        shutil.move(backup, away)
        fed(lake, batches=1)
        failed, _ = _failed_and_other(lake)
        assert failed.target == str(backup) and failed.next_retry_at is not None
        assert not backup.exists(), "nothing is begun where a disk is not mounted"
        fed(lake, batches=1)
        waited(lambda: _failed_and_other(lake)[1].lag_ms == 0)
        shutil.move(away, backup)
        waited(lambda: caught_up(lake))
        trouble = [event["error"] for event in running.told("trouble")]
        assert trouble and all(str(backup) in error for error in trouble), trouble
    assert contents(backup) == contents(tmp_path / "second") == contents(lake)


def _failed_and_other(lake: Lake) -> tuple[ReplicaStatus, ReplicaStatus]:
    """Waits until one replica has failed."""
    found: list[ReplicaStatus] = []

    def has_failed() -> bool:
        found[:] = sorted(lake.replicas().status(), key=lambda status: status.state != "failed")
        return found[0].state == "failed"

    waited(has_failed)
    return found[0], found[1]


def test_a_target_that_is_unmounted_in_its_first_copy_is_not_made_anew(lake: Lake, backup: Path) -> None:
    """No version is noted yet, which would say that there was a warehouse."""
    fed(lake)
    lake.replicas().add("orders", str(backup), throttle="300KB/s")
    away = backup.with_name("away")
    with daemon(lake) as running:
        waited(lambda: copies(backup))
        backup.rename(away)
        backup.mkdir()
        running.wait_for(lambda event: event["event"] == "trouble" and str(backup) in event["error"])
        assert "disk" in running.wait_for_kind("failed")["error"]  # is it mounted?
        assert list(backup.iterdir()) == []
        backup.rmdir()
        away.rename(backup)
        lake.replicas().edit("orders-to-backup", throttle=None)
        waited(lambda: caught_up(lake))
    assert contents(backup) == contents(lake)


def test_a_target_that_is_read_only_for_a_while(lake: Lake, backup: Path) -> None:
    fed(lake, batches=1)
    lake.replicas().add("orders", str(backup))
    with daemon(lake) as running:
        waited(lambda: caught_up(lake))
        folders = [backup, *(folder for folder in backup.rglob("*") if folder.is_dir())]
        with read_only(folders):
            fed(lake, batches=1)
            failed = running.wait_for_kind("failed")
            assert str(backup) in failed["error"]
            waited(lambda: only(lake.replicas().status()).state == "failed")  # notes are stored every 2 s
            assert contents(backup), "what it has is still read"
        waited(lambda: caught_up(lake))
    assert contents(backup) == contents(lake)


@contextmanager
def read_only(folders: Sequence[Path]) -> Iterator[None]:
    """Nothing can be created in these folders. For root too: they are immutable, where the file system knows that."""
    if os.geteuid() != 0:
        for folder in folders:
            folder.chmod(0o555)
    elif subprocess.run(["chattr", "+i", *map(str, folders)], check=False, capture_output=True).returncode:
        pytest.skip("root may write anywhere, and the file system knows no immutable folders")
    try:
        yield
    finally:
        if os.geteuid() != 0:
            for folder in folders:
                folder.chmod(0o755)
        else:
            subprocess.run(["chattr", "-i", *map(str, folders)], check=True)
