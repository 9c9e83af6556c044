"""What is left of segment files is what a real Kafka cleaner left of them, batch by batch (issue 31)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lithify.kafka_log.cleaning.clean_settings import clean_settings
from lithify.kafka_log.cleaning.directory_cleaner import DirectoryCleaner
from lithify.kafka_log.cleaning.log_round import CleanRequest
from support.kafka.log_files import TasksHere, batches_in, check_indexes, latest_in, write_stage

DATA = Path(__file__).parent / "data"
CASES = {path.stem: json.loads(path.read_text()) for path in sorted(DATA.glob("*.json"))}
ROUNDS = [(name, number) for name, case in CASES.items() for number in range(1, case["rounds"] + 1)]
COMPACTED = {"cleanup.policy": "compact"}
CLEANERS = ("delete.retention.ms", "min.compaction.lag.ms", "segment.bytes")

EXPIRED = {
    ("fuzz_1", 1): [27],
}
"""By case and round: empty batches of producers that have been silent for a day, as far as their records tell. The
broker had not looked yet; one that starts forgets them."""


@pytest.mark.parametrize(("name", "number"), ROUNDS)
def test_what_is_left_is_what_kafka_left(name: str, number: int, tmp_path: Path) -> None:
    case = CASES[name]
    before, after = case["before" if number == 1 else f"before_round_{number}"], case[f"after_round_{number}"]
    folder = write_stage(tmp_path / "data", "t", case, before)
    (tmp_path / "scratch").mkdir()
    config = {key: value for key, value in case["topic_config"].items() if key in CLEANERS}
    latest = latest_in(folder)
    now_ms = _clock(before, after, clean_settings("t", config, COMPACTED).delete_retention_ms)
    request = CleanRequest(tmp_path / "data", ["t"], config, lambda: now_ms)
    (log,) = DirectoryCleaner(TasksHere(tmp_path / "scratch"), request).clean().logs
    assert log.error is None
    assert log.end == after["cleaner_checkpoint"]
    left = {path: batches_in(path) for path in sorted(folder.glob("*.log"))}
    assert [int(path.stem) for path in left] == [segment["base"] for segment in after["segments"]]
    for batches, segment in zip(left.values(), after["segments"], strict=True):
        known = [one for one in segment["batches"] if one["base"] not in EXPIRED.get((name, number), [])]
        assert _comparable(batches) == _comparable(known)
    assert latest_in(folder) == latest
    check_indexes(folder)
    assert not [*folder.glob("*.cleaned"), *folder.glob("*.swap"), *folder.glob("*.deleted")]


def _clock(before: Any, after: Any, retention_ms: int) -> int:
    """The round's clock: recorded to some tenths of a second, but its batches tell it exactly."""
    old = {one.get("delete_horizon_ms") for one in _batches(before)}
    new = {one["delete_horizon_ms"] for one in _batches(after) if one.get("delete_horizon_ms") not in {*old, None}}
    assert len(new) <= 1
    return int(new.pop() - retention_ms if new else after["round_now_ms"])


def _batches(stage: Any) -> list[Any]:
    return [one for segment in stage["segments"] for one in segment["batches"]]


def _comparable(batches: list[Any]) -> list[Any]:
    """Other libraries compress to other sizes."""
    return [one if one["codec"] == "none" else {**one, "bytes": None} for one in batches]
