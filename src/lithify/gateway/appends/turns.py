"""Callers that append to one topic take turns: each commits what all that wait by then have brought.

    waiting   a b c d              the thread of a commits a b c d, while e and f come
              e f                  then the thread of e commits e f

No thread of its own does it: the caller that has waited longest does. A caller that has gone meanwhile gets no answer,
but its records may land. What waits is bounded, by topic and in total; what is too much is refused before it waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition, Lock
from typing import Generic, TypeVar

from lithify.errors import BusyError, UnknownOutcomeError
from lithify.model.names import TopicName
from lithify.model.settings.units import plural

T = TypeVar("T")
R = TypeVar("R")

PAUSE_S, PAUSES = 0.05, 3
"""A turn waits for the callers of the last one, which may send their next append at once: as long as one of them came
in the pause before. Else they and those that waited meanwhile would be two groups for ever, each with its commits.

A pause takes half as long as the last commit, and at most this."""

QUEUES_KEPT = 1_000
"""Of topics to which nobody appends right now, but whose callers may be back at once."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait, and be joined into one commit, in bytes of records and as a number of appends.

    One append may be larger than any of these, if nothing else waits.
    """

    topic_bytes: int = 64 * 2**20
    topic_appends: int = 1_000
    total_bytes: int = 256 * 2**20
    total_appends: int = 4_000
    commit_bytes: int = 32 * 2**20
    commit_appends: int = 256
    wait_s: float = 30.0
    """How long an append waits for its turn."""


class _Ticket(Generic[T, R]):
    """What one caller waits for: `outcome` is set when it is `done`."""

    def __init__(self, work: T, size: int, lock: Lock, *, alone: bool) -> None:
        self.work, self.size, self.alone = work, size, alone
        self.changed = Condition(lock)
        """It is done, or its turn has come: of all that wait only those wake up for whom that is so."""
        self.taken = self.done = False
        self.outcome: R | Exception | None = None


class _Queue(Generic[T, R]):
    """Those that wait for one topic."""

    def __init__(self, lock: Lock) -> None:
        self.arrived = Condition(lock)
        self.waiting: deque[_Ticket[T, R]] = deque()
        self.bytes = 0
        self.busy = False
        self.callers = 0
        self.expected = 0
        """How many the last turn has taken, and how many waited when it ended: so many may wait soon."""
        self.pause_s = 0.0

    def is_turn_of(self, ticket: _Ticket[T, R]) -> bool:
        return not self.busy and bool(self.waiting) and self.waiting[0] is ticket

    @property
    def are_back(self) -> bool:
        """Whether as many wait as are expected."""
        return len(self.waiting) >= self.expected


class Turns(Generic[T, R]):
    """Does works by topic: `commit` gets the works of one turn, in order, and returns an outcome for each."""

    def __init__(
        self,
        commit: Callable[[TopicName, Sequence[T]], Sequence[R]],
        limits: Limits,
        monotonic_ms: Callable[[], int],
    ) -> None:
        self._commit, self._limits, self._monotonic_ms = commit, limits, monotonic_ms
        self._lock = Lock()
        self._queues: dict[TopicName, _Queue[T, R]] = {}
        self._bytes = self._appends = 0

    def done(self, topic: TopicName, work: T, size: int, *, first: bool = False) -> R:
        """Waits until a commit has done the work. A turn has one work at most that has to be `first`.

        Raises `BusyError` before anything was done, or what `commit` raises.
        """
        ticket: _Ticket[T, R] = _Ticket(work, size, self._lock, alone=first)
        with self._lock:
            queue = self._queues.setdefault(topic, _Queue(self._lock))
            queue.callers += 1
        try:
            with self._lock:
                self._admit(topic, queue, ticket)
            turn = self._turn(topic, queue, ticket)
            if turn is not None:
                self._do(topic, queue, turn)
        finally:
            with self._lock:
                if ticket in queue.waiting:
                    queue.waiting.remove(ticket)
                    self._count(queue, ticket, -1)
                    self._call_next(queue)
                queue.callers -= 1
                if not queue.callers and (queue.expected < 2 or len(self._queues) > QUEUES_KEPT):
                    del self._queues[topic]
        if isinstance(ticket.outcome, Exception):
            raise ticket.outcome
        assert ticket.outcome is not None
        return ticket.outcome

    def _admit(self, topic: TopicName, queue: _Queue[T, R], ticket: _Ticket[T, R]) -> None:
        limits = self._limits
        of_topic = len(queue.waiting) >= limits.topic_appends or queue.bytes + ticket.size > limits.topic_bytes
        of_all = self._appends >= limits.total_appends or self._bytes + ticket.size > limits.total_bytes
        if (queue.waiting and of_topic) or (self._appends and of_all):
            where = f"{topic}: {plural(len(queue.waiting), 'append')}" if of_topic else f"{self._appends} appends"
            raise BusyError(f"{where} already wait for their turn, as many as may", hint="send it again in a second")
        queue.waiting.append(ticket)
        self._count(queue, ticket, 1)
        if queue.are_back:
            queue.arrived.notify()

    def _turn(self, topic: TopicName, queue: _Queue[T, R], ticket: _Ticket[T, R]) -> list[_Ticket[T, R]] | None:
        """What this caller is to commit, with its own before all that wait by then; None once another one has."""
        with self._lock:
            in_time = ticket.changed.wait_for(lambda: ticket.done or queue.is_turn_of(ticket), self._limits.wait_s)
            if ticket.taken:
                ticket.changed.wait_for(lambda: ticket.done)
                return None
            if not in_time:
                raise BusyError(
                    f"{topic}: no turn to append came within {self._limits.wait_s:.0f} s",
                    hint="send it again; nothing was appended",
                )
            queue.busy = True
            try:
                for _ in range(PAUSES):
                    before = len(queue.waiting)
                    if queue.arrived.wait_for(lambda: queue.are_back, queue.pause_s) or len(queue.waiting) == before:
                        break
            except BaseException:
                self._end(queue)
                raise
            return self._taken(queue)

    def _taken(self, queue: _Queue[T, R]) -> list[_Ticket[T, R]]:
        limits, turn, size = self._limits, list[_Ticket[T, R]](), 0
        while queue.waiting and len(turn) < limits.commit_appends:
            ticket = queue.waiting[0]
            if turn and (size + ticket.size > limits.commit_bytes or (ticket.alone and turn[0].alone)):
                break
            queue.waiting.popleft()
            self._count(queue, ticket, -1)
            size += ticket.size
            ticket.taken = True
            turn = [ticket, *turn] if ticket.alone else [*turn, ticket]
        return turn

    def _do(self, topic: TopicName, queue: _Queue[T, R], turn: list[_Ticket[T, R]]) -> None:
        ended = UnknownOutcomeError(
            f"{topic}: the append was interrupted; it may have landed",
            hint="check with `lithify status` and `lithify consume` before you send the same again",
        )
        outcomes: Sequence[R | Exception] = [ended] * len(turn)
        begun_ms = self._monotonic_ms()
        try:
            outcomes = self._commit(topic, [ticket.work for ticket in turn])
        except Exception as error:
            outcomes = [error] * len(turn)
        finally:  # whatever ends this thread, the others do not wait for ever
            with self._lock:
                for ticket, outcome in zip(turn, outcomes, strict=True):
                    ticket.outcome, ticket.done = outcome, True
                    ticket.changed.notify()
                queue.pause_s = min((self._monotonic_ms() - begun_ms) / 2000, PAUSE_S)
                queue.expected = min(len(turn) + len(queue.waiting), self._limits.commit_appends)
                self._end(queue)

    def _end(self, queue: _Queue[T, R]) -> None:
        queue.busy = False
        self._call_next(queue)

    def _call_next(self, queue: _Queue[T, R]) -> None:
        if queue.waiting:
            queue.waiting[0].changed.notify()

    def _count(self, queue: _Queue[T, R], ticket: _Ticket[T, R], sign: int) -> None:
        queue.bytes += sign * ticket.size
        self._bytes += sign * ticket.size
        self._appends += sign
