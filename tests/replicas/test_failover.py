"""A group that reads at the source, whose machines die, and that goes on at the replica (C58, C68)."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import lithify
from lithify import Lake, Record
from lithify.api.groups import Group
from lithify.api.wiring.replicas import copies_into
from lithify.errors import LogTruncatedError, RefusedError, UnknownGroupError
from lithify.model.names import TopicName
from replicas.test_processes import daemon, freeze, waited
from support.processes.programs import PROGRAM, start
from support.processes.programs import finished as ended_well

pytestmark = [pytest.mark.kills, pytest.mark.timeout(600)]

PARTITIONS = 3
Consume = Callable[[Path, str], tuple["subprocess.Popen[bytes]", Path]]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = lithify.open(str(tmp_path / "lake"))
    made.create_topic("orders", partitions=PARTITIONS)
    return made


@pytest.fixture
def consume(tmp_path: Path) -> Iterator[Consume]:
    """Starts a member of the group `g` that follows a topic, and prints into a file."""
    with ExitStack() as stack:

        def started(warehouse: Path, name: str) -> tuple[subprocess.Popen[bytes], Path]:
            path = tmp_path / name
            command = (*PROGRAM, "consume", "orders", "--group", "g", "--follow", "--lease", "4s")
            out, err = (stack.enter_context(Path(f"{path}{end}").open("wb")) for end in ("", ".err"))
            process = subprocess.Popen((*command, "--warehouse", str(warehouse)), stdout=out, stderr=err)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process, path

        yield started


def put(lake: Lake, numbers: range) -> None:
    lake.topic("orders").append([Record(b"k%d" % n, b"%d" % n, partition=n % PARTITIONS) for n in numbers])


def printed(path: Path) -> list[int]:
    """Whole lines: a member that was killed may have left a part of one."""
    return [int(json.loads(line)["value"]) for line in path.read_text("utf-8").splitlines() if line.endswith("}")]


def positions(place: Path) -> dict[int, int]:
    try:
        found = Group(lithify.open(str(place)).warehouse, "g").positions()
    except (UnknownGroupError, RefusedError):  # nothing was copied yet
        return {}
    return {position.log.partition: position.cursor.offset for position in found}


def test_a_group_goes_on_at_the_replica_once_its_source_is_lost_c68(
    lake: Lake, consume: Consume, tmp_path: Path
) -> None:
    source, backup = tmp_path / "lake", tmp_path / "backup"
    lake.replicas().add("orders", str(backup), sync_groups=True)
    put(lake, range(300))
    member, first = consume(source, "first")
    with daemon(lake) as running:
        waited(lambda: sum(positions(backup).values()) == 300)
        synced = positions(backup)
        put(lake, range(300, 330))
        running.wait_for(lambda event: event["event"] == "copied" and event["version"] >= 3)
        waited(lambda: len(printed(first)) == 330)
        running.signal(signal.SIGKILL)
        member.kill()
        member.wait()
    shutil.move(source, tmp_path / "lost")
    at_failover = positions(backup)
    assert all(synced[partition] <= offset for partition, offset in at_failover.items())
    replica = lithify.open(str(backup))
    replica.replicas().promote("orders")
    put(replica, range(330, 400))
    _, second = consume(backup, "second")
    waited(lambda: sum(positions(backup).values()) == 400)
    assert sorted(printed(first)) == list(range(330))
    again = sorted(printed(second))
    assert len(again) == len(set(again)) == 400 - sum(at_failover.values())
    assert again[-100:] == list(range(300, 400)), "repeated is what was read since the positions were copied"
    assert {*printed(first), *again} == set(range(400))
    assert not Path(f"{second}.err").read_text("utf-8")


def test_a_group_that_has_missed_deletes_is_told_so_at_the_replica_c49(lake: Lake, tmp_path: Path) -> None:
    topic, backup = lake.create_topic("users", config={"delete.retention.ms": 0}), tmp_path / "backup"
    lake.replicas().add("users", str(backup), sync_groups=True)
    topic.append([Record(b"a", b"1"), Record(b"b", b"1")])
    with topic.reader(group="g") as reader:
        assert len(list(reader)) == 2
        reader.commit()
    topic.append([Record(b"a", None), Record(b"b", b"2"), Record(b"b", b"3")])
    topic.compact()
    assert not topic.compact().failed
    said = []
    with daemon(lake, "--once") as running:
        assert running.ended() == 0
    replica = lithify.open(str(backup))
    copies = copies_into(replica.warehouse)
    assert copies is not None
    fence = copies.fence(TopicName("default", "users"))
    replica.replicas().promote("users")
    assert copies.fence(TopicName("default", "users")) > fence, "a daemon that was frozen writes no position any more"
    for place in (lake, replica):
        with pytest.raises(LogTruncatedError) as error, place.topic("users").reader(group="g") as reader:
            list(reader)
        said.append(str(error.value))
    assert "rounds have removed deletes" in said[0] and said[0] == said[1]


def test_two_daemons_one_of_which_is_frozen_set_no_position_back(lake: Lake, tmp_path: Path) -> None:
    backup = tmp_path / "backup"
    lake.replicas().add("orders", str(backup), sync_groups=True)
    put(lake, range(30))
    with daemon(lake, "--id", "first") as first, daemon(lake, "--id", "second") as second:
        waited(lambda: lake.replicas().status()[0].lag_ms == 0)
        for turn, frozen in enumerate((first, second)):
            freeze(frozen, lake)
            with lake.topic("orders").reader(group="g") as reader:
                list(reader)
                reader.commit()
            want = 30 * (turn + 1)
            waited(lambda want=want: sum(positions(backup).values()) == want)
            frozen.signal(signal.SIGCONT)
            time.sleep(2)
            assert sum(positions(backup).values()) == want
            put(lake, range(want, want + 30))
        assert first.told("failed") == second.told("failed") == []


def test_a_planned_move_repeats_nothing(lake: Lake, tmp_path: Path) -> None:
    source, backup = tmp_path / "lake", tmp_path / "backup"
    put(lake, range(90))
    lake.replicas().add("orders", str(backup), sync_groups=True)
    group = ("-m", "lithify", "consume", "orders", "--group", "g", "--warehouse")
    first = ended_well(start(*group, str(source)))
    put(lake, range(90, 120))
    ended_well(start("-m", "lithify", "replica", "run", "--once", "--warehouse", str(source)))
    second = ended_well(start(*group, str(backup)))
    values = [[int(json.loads(line)["value"]) for line in text.splitlines()] for text in (first, second)]
    assert (sorted(values[0]), sorted(values[1])) == (list(range(90)), list(range(90, 120)))
