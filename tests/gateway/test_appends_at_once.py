"""Sixteen clients append through two gateways of a stored lake, which lose answers and die: each append is there once.

Every client sends an append again, with the same key and to either gateway, until it is acknowledged.
"""

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa

from lithify.api.wiring import open_warehouse
from lithify.api.wiring.appends import append_notes_of
from lithify.errors import LithifyError, WarehouseError
from lithify.gateway.appends.appends import Appends
from lithify.gateway.appends.keys import AppendKey
from lithify.model.names import TopicName, TopicReference
from lithify.ports.store import CommitUnknownError, Warehouse
from lithify.service.creation import create_topic
from lithify.service.read.fetch import open_log
from lithify.service.write.append import AppendResult
from support.faults.ports import CrashError, FaultyPort
from support.topics.whole_logs import check_whole

NAME = TopicName("default", "orders")
CLIENTS, APPENDS, RECORDS, PARTITIONS = 16, 2, 7, 2
TRIES = 60


class Weather:
    """Some calls fail, some lose their answer, and after some the thread dies as if its gateway did."""

    def __init__(self, seed: int, share: float) -> None:
        self._drawn, self._share, self._lock = random.Random(seed), share, Lock()

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        with self._lock:
            drawn = self._drawn.random() / self._share
        if drawn < 0.3:
            raise WarehouseError(f"injected: {name}")
        answer = action()
        if drawn < 0.6 and name == "commit":
            raise CommitUnknownError(f"injected: {name}")
        if drawn < 0.9:
            return answer
        if drawn < 1:
            raise CrashError(name)
        return answer


def gateway(folder: Path, seed: int, share: float) -> Appends:
    warehouse = open_warehouse(str(folder))
    notes = append_notes_of(warehouse, None)
    assert notes is not None
    if not share:
        return Appends(warehouse, notes)
    weather: Any = Weather(seed, share)
    struck: Any = FaultyPort(warehouse.store, weather)
    return Appends(Warehouse(struck, warehouse.files, warehouse.clock), notes)


def table(text: str) -> pa.Table:
    numbers = range(RECORDS)
    return pa.table({"key": [f"{text}/{n}".encode() for n in numbers], "value": [text.encode()] * RECORDS})


def run(folder: Path, share: float, *, keys: bool) -> dict[str, AppendResult]:
    """What each append was answered."""
    gateways = [gateway(folder, seed, share) for seed in (1, 2)]

    def client(number: int) -> dict[str, AppendResult]:
        answers = {}
        for one in range(APPENDS):
            text = f"{number}-{one}"
            key = AppendKey.of(text, text.encode()) if keys else None
            for attempt in range(TRIES):
                try:
                    answers[text] = gateways[(number + attempt) % 2].append(NAME, table(text), key)
                    break
                except (LithifyError, CrashError):
                    assert keys
        return answers

    with ThreadPoolExecutor(CLIENTS) as pool:
        return {text: answer for answers in pool.map(client, range(CLIENTS)) for text, answer in answers.items()}


def check(folder: Path, answers: dict[str, AppendResult]) -> None:
    """All are acknowledged and there once, where their answers say."""
    warehouse = open_warehouse(str(folder))
    state = check_whole(warehouse, NAME)
    assert len(answers) == CLIENTS * APPENDS
    logs = {p: {r.offset: r for r in open_log(warehouse, state, p)} for p in state.partitions}
    for text, answer in answers.items():
        at = [logs[place.partition][offset] for place in answer.ranges for offset in _offsets(place)]
        assert sorted(r.key or b"" for r in at) == sorted(table(text).column("key").to_pylist())
        assert answer.records == RECORDS
    there = Counter(r.key for log in logs.values() for r in log.values())
    assert set(there.values()) == {1}
    assert len(there) == len(answers) * RECORDS


def _offsets(place: Any) -> range:
    return range(place.start_offset, place.end_offset)


def made(folder: Path) -> Path:
    create_topic(open_warehouse(str(folder)), TopicReference(NAME, "orders"), {}, PARTITIONS)
    return folder


def test_each_answer_has_the_offsets_of_its_records(tmp_path: Path) -> None:
    folder = made(tmp_path / "lake")
    answers = run(folder, 0, keys=False)
    check(folder, answers)
    assert len({answer.version for answer in answers.values()}) < len(answers)


def test_with_keys_each_append_is_there_once_whatever_gateways_do(tmp_path: Path) -> None:
    folder = made(tmp_path / "lake")
    check(folder, run(folder, 0.05, keys=True))
