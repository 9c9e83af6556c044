"""A profile of a round: what it keeps, the files that it writes, and folders that it refuses."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from lithify.api.profiles import PROFILE, TRACE, RoundProfile, profile_folder
from lithify.errors import RefusedError
from lithify.model.names import LogId, TopicName
from lithify.ports.profile import Gauges, TaskSpent
from support.servers.disks import read_only

LOG = LogId(TopicName("default", "orders"), 3)


class Ticking:
    """A clock that goes on by a second each time that it is read."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        self.seconds += 1
        return self.seconds


def a_profile(most_tasks: int = 10) -> RoundProfile:
    return RoundProfile(most_tasks, Gauges(Ticking(), Ticking()), began_s=1000.0)


def a_task(part: int, worker: str = "a:17") -> TaskSpent:
    return TaskSpent("range", part, worker, 1002.5, 0.25, 0.125, 0.0, 2**20, 100, 0, 9)


def rows(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / PROFILE).read_text().splitlines()]


def test_phases_and_tasks_are_rows_and_events(tmp_path):
    profile = a_profile()
    with pytest.raises(KeyError), profile.phase("key_pass"):
        profile.task(LOG, a_task(0))
        profile.task(LOG, a_task(1, "b:5"))
        raise KeyError
    profile.save(tmp_path)
    whole, phase, first, second = rows(tmp_path)
    assert whole == {"of": "round", "began_s": 1000.0, "tasks": 2, "tasks_left_out": 0}
    assert (phase["of"], phase["name"], phase["began_s"], phase["wall_s"], phase["cpu_s"]) == (
        *("phase", "key_pass", 1001.0, 1.0, 1.0),
    )
    assert (first["of"], first["log"], first["part"], second["part"], first["bytes_read"]) == (
        *("task", "orders-3", 0, 1, 100),
    )
    events = json.loads((tmp_path / TRACE).read_text())["traceEvents"]
    shown = [(e["name"], e["pid"], e["tid"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert shown == [
        ("key_pass", 0, 0, 1_000_000, 1_000_000),
        ("range 0 of orders-3", 1, 17, 2_500_000, 250_000),
        ("range 1 of orders-3", 2, 5, 2_500_000, 250_000),
    ]
    assert [e["args"]["name"] for e in events if e["ph"] == "M"] == ["round", "workers on a", "workers on b"]
    assert events[-1]["args"]["records"] == 9


def test_a_profile_keeps_no_more_tasks_than_its_limit(tmp_path):
    profile = a_profile(most_tasks=2)
    for part in range(5):
        profile.task(LOG, a_task(part))
    profile.save(tmp_path)
    assert [row.get("part") for row in rows(tmp_path)] == [None, 0, 1]
    assert (rows(tmp_path)[0]["tasks"], rows(tmp_path)[0]["tasks_left_out"]) == (2, 3)


@pytest.mark.parametrize("full", [PROFILE, TRACE])
def test_a_profile_that_cannot_be_written_leaves_no_piece(tmp_path, full):
    (tmp_path / full).symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        a_profile().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_no_piece(tmp_path):
    class Interrupted(list):
        def __iter__(self):
            yield (LOG, a_task(0))
            raise KeyboardInterrupt

    profile = a_profile()
    profile.tasks = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        profile.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_profile_is_written_row_by_row(tmp_path):
    """The driver has tasks by the hundred thousand."""
    profile = a_profile(most_tasks=5_000)
    for part in range(5_000):
        profile.task(LOG, a_task(part))
    tracemalloc.start()
    profile.save(tmp_path)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) > 2_000_000
    assert peak_bytes < 500_000


def test_a_folder_is_created_or_taken_if_it_is_empty(tmp_path):
    assert profile_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert list(profile_folder(tmp_path / "a" / "b").iterdir()) == []


def test_folders_that_cannot_take_a_profile_are_refused(tmp_path):
    file = tmp_path / "file"
    file.touch()
    closed = tmp_path / "closed"
    closed.mkdir()
    for folder, why in ((file, "File exists"), (file / "in", "Not a directory"), (tmp_path, "the folder is not empty")):
        with pytest.raises(RefusedError, match=why):
            profile_folder(folder)
    with pytest.raises(RefusedError, match="this name is not valid for a folder"):
        profile_folder("a\0b")
    with read_only(closed), pytest.raises(RefusedError, match="Permission denied"):
        profile_folder(closed)
