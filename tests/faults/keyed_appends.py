"""Two gateways and clients that send an append again with its key: what has to be so after any fault (C75)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from lithify.errors import CoordinationError, LithifyError
from lithify.gateway.appends.appends import Appends
from lithify.gateway.appends.keys import AppendKey
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.store import CommitUnknownError, Warehouse
from lithify.service.write.append import AppendResult
from support.faults.ports import LONG_MS, CrashError, FaultyPort, Injector, Kind, faulty
from support.faults.topics import NAME, PARTITIONS
from support.topics.memory_notes import MemoryNotes
from support.topics.memory_topic import a_warehouse
from support.topics.whole_logs import check_whole, contents

ENOUGH_S = 60
START_MS = 10 * LONG_MS
Striker = Any


def batch(text: str) -> list[Record]:
    """Three records in two logs, which no other append has."""
    return [Record(key=b"k", value=f"{text}/{n}".encode(), partition=n % PARTITIONS) for n in range(3)]


@dataclass(slots=True)
class Lake:
    """A warehouse, the database of notes, and what clients were told."""

    warehouse: Warehouse
    notes: Any
    """`SqlAppendNotes`, or the same in memory."""
    acknowledged: dict[str, list[AppendResult]] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)

    @classmethod
    def made(cls, warehouse: Warehouse, notes: Any = None) -> Lake:
        """With a topic in an empty warehouse."""
        settings = settings_of({"min.cleanable.dirty.ratio": 0.0})
        warehouse.store.create_topic(NewTopic(NAME, "orders", settings, PARTITIONS, warehouse.clock.now_ms()))
        return cls(warehouse, notes or MemoryNotes())

    def gateway(self, striker: Striker | None = None) -> Appends:
        """A gateway, as a process of its own; behind ports that are struck."""
        if striker is None:
            return Appends(self.warehouse, self.notes)
        return Appends(faulty(self.warehouse, striker), FaultyPort(self.notes, NoteStriker(striker)))  # type: ignore[arg-type]

    def send(self, gateway: Appends, text: str) -> AppendResult | None:
        """A client sends an append with its key; None for an error, or a gateway that died."""
        try:
            result = gateway.append(NAME, batch(text), AppendKey.of(text, text.encode()))
        except (LithifyError, CrashError) as error:
            self.errors.append(error)
            return None
        self.acknowledged.setdefault(text, []).append(result)
        return result

    def until_acknowledged(self, gateway: Appends, text: str) -> AppendResult:
        """A client sends it again and again."""
        for _ in range(5):
            if (result := self.send(gateway, text)) is not None:
                return result
        raise self.errors[-1]

    def check(self, texts: Sequence[str]) -> None:
        """All these were acknowledged, are there once, where each answer says; and nothing is there twice."""
        check_whole(self.warehouse, NAME)
        logs = contents(self.warehouse, NAME)
        there = Counter(record.value for log in logs for record in log if b"/" in (record.value or b""))
        assert [value for value, times in there.items() if times > 1] == []
        for text in texts:
            assert self.acknowledged.get(text), text
        for text, results in self.acknowledged.items():
            assert len({result.ranges for result in results}) == 1, text
            (ranges,) = {result.ranges for result in results}
            for partition, log in enumerate(logs):
                wanted = [r.value for r in batch(text) if r.partition == partition]
                ours = [r for r in ranges if r.partition == partition]
                at = {offset for r in ours for offset in range(r.start_offset, r.end_offset)}
                assert [r.value for r in log if r.offset in at] == wanted, text


@dataclass(slots=True)
class NoteStriker:
    """Strikes at notes as the database of leases fails: with another error than the warehouse's."""

    striker: Striker

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        try:
            return self.striker.call(f"note: {name}", action)
        except (LithifyError, CommitUnknownError) as error:
            raise CoordinationError(str(error)) from error


@dataclass(slots=True)
class Late:
    """Strikes only once it is `armed`; until then a commit waits, so that appends join the next one."""

    striker: Striker
    begun: threading.Event = field(default_factory=threading.Event)
    armed: threading.Event = field(default_factory=threading.Event)

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        if self.armed.is_set():
            return self.striker.call(name, action)
        if name == "commit":
            self.begun.set()
            assert self.armed.wait(ENOUGH_S)
        return action()


def send_joined(lake: Lake, striker: Striker, texts: Sequence[str]) -> None:
    """Clients of one gateway send these at a time, so that one commit, at which it is struck, appends them all."""
    late = Late(striker)
    gateway = lake.gateway(late)
    with ThreadPoolExecutor(len(texts) + 1) as pool:
        first = pool.submit(gateway.append, NAME, batch("first"))
        assert late.begun.wait(ENOUGH_S)
        sent = []
        for number, text in enumerate(texts, 1):
            sent.append(pool.submit(lake.send, gateway, text))
            while len(gateway._turns._queues[NAME].waiting) < number:
                threading.Event().wait(0.001)
        late.armed.set()
        for one in (first, *sent):
            one.exception(ENOUGH_S)


def retried() -> None:
    """A gateway dies at each of its calls, and another one appends the same."""
    for striker in calls(lambda at: Injector(at, Kind.CRASHES_AFTER)):
        lake = Lake.made(a_warehouse(now_ms=START_MS))
        lake.send(lake.gateway(striker), "a")
        lake.until_acknowledged(lake.gateway(), "a")
        lake.check(["a"])


def calls(made: Callable[[int], Striker], limit: int = 80) -> Iterator[Striker]:
    """Strikers for the first port call, the second, and so on, until one is not reached."""
    for at in range(1, limit):
        striker = made(at)
        yield striker
        if len(striker.calls) < at:
            assert at > 5, "hardly a call: nothing was tried"
            return
    raise AssertionError("no run makes so many calls")
