"""What happens in a gateway, for those who watch it: events of its cleaner and its jobs, and the progress of its work.

    ring     the latest events, and the latest rounds      numbered; a follower asks for those after a number
    running  of each round and job the latest progress     replaced, so that a busy one takes no more room

Threads that work only store what happened, so that none waits for a slow reader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any

from lithify.daemons.cleaner.cleaner_options import RoundProgress
from lithify.gateway.server.jobs.jobs import ENDED, Job
from lithify.reports.events import CleanerEvent, EventKind, event_text

KEPT = 500
ROUNDS_KEPT = 2_000
"""By themselves, so that checks of the topics do not push them out."""

Numbered = tuple[int, str, Mapping[str, Any]]
"""A number, the kind of event, and its data."""


class Events:
    """The events of one gateway since it began."""

    def __init__(self) -> None:
        self._number = 0
        self._others: deque[Numbered] = deque(maxlen=KEPT)
        self._rounds: deque[Numbered] = deque(maxlen=ROUNDS_KEPT)
        self._running: dict[str, Numbered] = {}
        self._dropped = 0
        """The number of the last event that is not kept any more."""
        self._lock = Lock()

    def told(self, event: CleanerEvent) -> None:
        """An event of the cleaner."""
        ring = self._rounds if event.kind is EventKind.ROUND else self._others
        text = event_text(event.kind, event.facts)
        self._add(ring, "cleaner", {**event.to_json(), "time_ms": event.time_ms, "text": text})

    def proceeded(self, progress: RoundProgress) -> None:
        """A round of the cleaner has begun, has proceeded, or ended."""
        data = {
            "work": progress.work,
            "topics": list(progress.topics[:TOPICS_NAMED]),
            "topics_in_all": len(progress.topics),
            "begun_ms": progress.begun_ms,
            "phase": progress.phase,
            "done": progress.done,
            "total": progress.total,
            "ended": progress.ended,
        }
        self._proceeds("round", progress.work, data, ended=progress.ended)

    def job(self, job: Job) -> None:
        """A job was queued, has begun, has proceeded or ended; who began it is told by the list of jobs."""
        data = {name: value for name, value in job.to_json().items() if name not in ("report", "who")}
        self._proceeds("job", job.id, data, ended=job.state in ENDED)

    def lacks(self, number: int) -> bool:
        """Whether something that happened after that number is not kept any more. Who has nothing yet lacks nothing."""
        return 0 < number < self._dropped

    def since(self, number: int) -> list[Numbered]:
        """What is kept of what happened after that number, in order."""
        with self._lock:
            if number >= self._number:
                return []
            fresh = [*_after(self._others, number), *_after(self._rounds, number)]
            fresh += [event for event in self._running.values() if event[0] > number]
        return sorted(fresh, key=lambda event: event[0])

    def _proceeds(self, kind: str, work: str, data: Mapping[str, Any], *, ended: bool) -> None:
        if ended:
            with self._lock:
                self._running.pop(work, None)
            self._add(self._others, kind, data)
            return
        with self._lock:
            self._number += 1
            self._running[work] = (self._number, kind, data)

    def _add(self, ring: deque[Numbered], kind: str, data: Mapping[str, Any]) -> None:
        with self._lock:
            self._number += 1
            if len(ring) == ring.maxlen:
                self._dropped = max(self._dropped, ring[0][0])
            ring.append((self._number, kind, data))


TOPICS_NAMED = 20
"""Of a round of many small topics."""


def _after(ring: deque[Numbered], number: int) -> Iterator[Numbered]:
    return (event for event in ring if event[0] > number)
