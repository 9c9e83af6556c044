"""Producers that append to ledgers over HTTP, and consumers that follow them, each on a thread of its own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from threading import Event

from lithify.errors import LithifyError, VersionSweptError
from lithify.model.record import Record
from soak.gateways.asking import Gateways, NoAnswerError
from soak.gateways.ledger import Append, Ledger
from soak.gateways.reading import HttpReader
from soak.journal import at

GIVES_UP, SENDS_AGAIN, SENDS_TWICE = 0.3, 0.1, 0.1
"""Of the appends without an answer, of those with one, and of all, to two gateways at once."""
POLLS_EVERY_S = 1.0
CATCHES_UP_S = 120.0


@dataclass(slots=True)
class Producer:
    """Appends to one ledger after the other, at most `per_s` times a second."""

    name: str
    ledgers: Sequence[Ledger]
    gateways: Gateways
    luck: Random
    per_s: float
    stop: Event
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Until it is asked to stop. What goes wrong is a finding, and ends it."""
        number = 0
        try:
            while not self.stop.wait(self.luck.uniform(0, 2 / self.per_s)):
                number += 1
                ledger = self.luck.choice(self.ledgers)
                self._appends(ledger, ledger.begun(f"{self.name}-{number}", self.luck))
        except Exception as error:
            self.findings.append(f"{self.name}: {type(error).__name__}: {error}")

    def _appends(self, ledger: Ledger, append: Append) -> None:
        self.counts["appends"] += 1
        if self.luck.random() < SENDS_TWICE:
            self._twice(ledger, append)
        elif self.luck.random() < GIVES_UP:
            self._once(ledger, append)
        else:
            self._surely(ledger, append)
        if append.answer is not None and self.luck.random() < SENDS_AGAIN:
            self.counts["sent again"] += 1
            self._surely(ledger, append)

    def _surely(self, ledger: Ledger, append: Append) -> None:
        ledger.answered(append, self.gateways.append(ledger.topic, append.records, append.key, self.luck))

    def _once(self, ledger: Ledger, append: Append) -> None:
        url = self.luck.choice(self.gateways.all)
        patience_s = self.luck.choice((self.luck.uniform(0.01, 0.2), 5.0))
        try:
            answer = self.gateways.append_once(url, ledger.topic, append.records, append.key, patience_s)
            ledger.answered(append, answer)
        except NoAnswerError:
            self.counts["given up"] += 1

    def _twice(self, ledger: Ledger, append: Append) -> None:
        """To two gateways at the same time; then to any of them until its outcome is known."""
        self.counts["sent twice at once"] += 1
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: self._once(ledger, append), range(2)))
        self._surely(ledger, append)


@dataclass(slots=True)
class Consumer:
    """Follows one log of a ledger, and says which records it has not seen."""

    ledger: Ledger
    reader: HttpReader
    stop: Event
    seen: dict[int, Record] = field(default_factory=dict)
    swept: int = 0
    findings: list[str] = field(default_factory=list)

    def run(self) -> None:
        try:
            while not self.stop.wait(POLLS_EVERY_S):
                self.poll()
        except LithifyError as error:
            self.findings.append(f"{self.where}: {error.code}: {error}")

    def poll(self) -> None:
        try:
            for page in self.reader.poll():
                for record in page.records():
                    self._see(record)
        except VersionSweptError:  # between two pages: it goes on where it was
            self.swept += 1
            self.reader.start, self.reader.cursor = self.reader.position, None

    def finish(self) -> None:
        """Once nothing is appended any more, and while gateways run."""
        records = {
            place[1]: record
            for append in self.ledger.appends
            if append.answer is not None
            for place, record in append.places()
            if place[0] == self.reader.partition and not (record.key or b"").startswith(b"shared-")
        }
        until_s = time.monotonic() + CATCHES_UP_S
        while not self.findings and records.keys() - self.seen.keys() and time.monotonic() < until_s:
            self.poll()
        missed = [record for offset, record in records.items() if not _same(self.seen.get(offset), record)]
        if missed:
            self.findings.append(f"{self.where}: has not seen {len(missed)} records, such as {missed[0]}")

    @property
    def where(self) -> str:
        return f"{self.ledger.topic}[{self.reader.partition}] consumer over HTTP"

    def _see(self, record: Record) -> None:
        if self.seen and at(record) <= next(reversed(self.seen)):
            self.findings.append(f"{self.where}: got {at(record)} after {next(reversed(self.seen))}")
        self.seen[at(record)] = record


def _same(seen: Record | None, record: Record) -> bool:
    return seen is not None and (seen.key, seen.value) == (record.key, record.value)
