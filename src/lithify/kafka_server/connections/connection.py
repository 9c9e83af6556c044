"""One connection: one request at a time, in their order, as a broker has it.

received ──► frame ──► answer ──► unsent ──► the kernel
   │           │                    │
   │           │                    ╰─ the next frame waits until all is sent
   │           ╰─ 64 KiB before a login, 1 MiB after it; more closes the connection
   ╰─ no more is read while 64 KiB wait behind a request

a frame that has begun and is not there within 30 s, no login within 30 s     closed
no request for 10 min                                                         closed
an answer that is not taken within 60 s and a second for each 64 KiB          closed
bytes that no client acknowledges for 60 s                                    closed by the kernel
answers of more than 512 MiB, all together, that are not taken                the oldest of the token with most closed
requests of more than 32 MiB, all together, half there or not answered yet    the largest of the token with most closed
more connections than may be                                                  those that are idle, for others
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from lithify.errors.defects import as_lithify_error
from lithify.kafka_server.connections.answering import Answer, Answering, ClosingError, Reason, Session

FRAME_BYTES, STRANGE_FRAME_BYTES, AHEAD_BYTES = 2**20, 2**16, 2**16
UNSENT_BYTES, HELD_BYTES = 2**29, 2**25
FRAME_S, IDLE_S, UNREAD_S, LEAST_RATE = 30.0, 600.0, 60, 2**16
_LENGTH_BYTES: Final = 4
_TLS: Final = b"\x16\x03"
"""The begin of a handshake, which would be the length of a frame."""
_GONE: Final = ("-", 0)
"""The address of a client that has left before it is asked for."""
_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)


@dataclass(slots=True)
class Connections:
    """All connections of a listener. `make_room` closes some if there are too many; `closed` gets why one was."""

    answering: Answering
    make_room: Callable[[set[Any]], Sequence[Any]]
    """Returns those that it has closed."""
    closed: Callable[[str, Reason], None]
    """Gets the address of a client, and the reason."""
    all: set[Any] = field(default_factory=set)
    unsent_bytes: int = 0
    """Of all answers, which hold batches in memory."""
    held_bytes: int = 0
    """Of all requests, which take ten times as much once they are read, as a fetch that waits."""

    def close_late(self, now_s: float) -> None:
        """Closes those that have waited for too long."""
        for one in [one for one in self.all if isinstance(one, Connection) and one.due_s < now_s]:
            one.give_up()

    def close_slow(self) -> None:
        """Closes those whose answers are not taken for longest, if all of them together are too much."""
        while self.unsent_bytes > UNSENT_BYTES and (some := self._of_most(lambda one: one.unsent_bytes)):
            oldest = min(some, key=lambda one: one.strange_since_s)
            self.closed(oldest.host, f"answers of {self.unsent_bytes} bytes are not taken, and its was the oldest")
            oldest.give_up()

    def close_large(self) -> None:
        """Closes those whose requests are largest, if all of them together are too much."""
        while self.held_bytes > HELD_BYTES and (some := self._of_most(lambda one: one.held_bytes)):
            largest = max(some, key=lambda one: one.held_bytes)
            self.closed(largest.host, f"requests of {self.held_bytes} bytes are under way, and its was the largest")
            largest.give_up()

    def _of_most(self, size: Callable[[Connection], int]) -> list[Connection]:
        """Those that have something, of the token that has most of it; all that have not logged in count as one.

        Else who has many connections would close connections of others.
        """
        some = [one for one in self.all if isinstance(one, Connection) and size(one)]
        sizes = Counter[str | None]()
        for one in some:
            sizes[one.token] += size(one)
        most = max(sizes, key=lambda token: sizes[token], default=None)
        return [one for one in some if one.token == most]


class Connection(asyncio.Protocol):
    """The protocol of one connection.

    `connections`, `host`, `make_room`, `is_strange` and `give_up` are also what a TLS handshake needs.
    """

    def __init__(self, of: Connections) -> None:
        self._of, self.connections = of, of.all
        self._loop = asyncio.get_running_loop()
        self.strange_since_s = self.due_s = self._loop.time()
        self._received = bytearray()
        self._unsent: deque[Any] = deque()
        self._is_full = self._is_last = False
        self._late_bytes = self._asked_bytes = 0
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        """Counts it among all."""
        self._transport = transport
        connected = transport.get_extra_info("socket")
        if connected is not None and _USER_TIMEOUT is not None:
            connected.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, UNREAD_S * 1000)
        self._client = transport.get_extra_info("peername") or _GONE
        local = transport.get_extra_info("sockname") or _GONE
        self._session: Session = self._of.answering.begin(self._client[:2], local[:2])
        self.strange_since_s = self._loop.time()
        self._login_by_s = self.strange_since_s + FRAME_S
        self._wait(FRAME_S)
        self.connections.add(self)
        self.make_room()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request, or of several."""
        if self not in self.connections:  # given up
            return
        if not self._received and self._is_idle:
            self._wait(FRAME_S)
        self._received += data
        self._of.held_bytes += len(data)
        self._of.close_large()
        if self._is_idle:
            self._next()
        elif len(self._received) > AHEAD_BYTES:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._of.unsent_bytes -= self._late_bytes
        self._late_bytes = 0
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        """Whatever it waits for ends."""
        self.connections.discard(self)
        self._drop()
        if self._task is not None:
            self._task.cancel()
            self._task = None  # it ends with an error whose frames hold this: what it has read would stay in memory

    def make_room(self) -> None:
        """Closes some if there are too many."""
        if gone := self._of.make_room(self.connections):
            most = len(self.connections) + len(gone) - 1
            self._of.closed(gone[0].host, f"there were more than {most} connections, and it was idle")

    @property
    def host(self) -> str:
        """The address of the client."""
        return str(self._client[0])

    @property
    def held_bytes(self) -> int:
        """Of its requests."""
        return len(self._received) + self._asked_bytes

    @property
    def is_strange(self) -> bool:
        """Whether no request of a known client is under way."""
        return self._is_idle or not self._session.is_known

    @property
    def token(self) -> str | None:
        """With which its client has logged in."""
        return self._session.token_id

    @property
    def unsent_bytes(self) -> int:
        """Of an answer, as far as it is still here."""
        return sum(map(len, self._unsent)) + self._late_bytes

    def give_up(self) -> None:
        """Closes it at once, and counts it no more."""
        self.connections.discard(self)
        self._drop()
        self._transport.abort()

    def _drop(self) -> None:
        self._of.unsent_bytes -= self.unsent_bytes
        self._of.held_bytes -= self.held_bytes
        self._late_bytes = self._asked_bytes = 0
        self._unsent.clear()
        self._received.clear()

    @property
    def _is_idle(self) -> bool:
        return self._task is None and not self._unsent and not self._is_full

    def _wait(self, seconds: float) -> None:
        self.due_s = self._loop.time() + seconds
        if not self._session.is_known:
            self.due_s = min(self.due_s, self._login_by_s)

    def _next(self) -> None:
        """Has the next request answered, if it is there."""
        size = int.from_bytes(self._received[:_LENGTH_BYTES], "big", signed=True)
        end = _LENGTH_BYTES + size
        if len(self._received) < _LENGTH_BYTES or (0 < size <= self._frame_bytes and len(self._received) < end):
            self._transport.resume_reading()
            return
        if not 0 < size <= self._frame_bytes:
            reason = f"it sent a frame of {size} bytes; at most {self._frame_bytes} are taken"
            self._end("it speaks TLS, and this address does not" if self._received.startswith(_TLS) else reason)
            return
        frame = bytes(self._received[_LENGTH_BYTES:end])
        del self._received[:end]
        self._asked_bytes = end
        self.due_s = inf
        self._task = self._loop.create_task(self._answer(frame))

    @property
    def _frame_bytes(self) -> int:
        return FRAME_BYTES if self._session.is_known else STRANGE_FRAME_BYTES

    async def _answer(self, frame: bytes) -> None:
        try:
            answer = await self._of.answering.answer(self._session, frame)
        except ClosingError as error:
            self._end(error.reason, error.last)
            return
        except Exception as error:
            self._end(as_lithify_error(error, "a request of a Kafka client"))
            return
        self._task = None
        self._of.held_bytes -= self._asked_bytes
        self._asked_bytes = 0
        if self._session.is_known:
            self.strange_since_s = self._loop.time()
        self._begin_sending(answer or [])

    def _end(self, reason: Reason, last: Answer | None = None) -> None:
        """Closes it once `last` is sent."""
        self._of.closed(self.host, reason)
        self._task, self._is_last = None, True
        self._transport.pause_reading()
        self._begin_sending(last or [])

    def _begin_sending(self, answer: Answer) -> None:
        size = sum(map(len, answer))
        self._unsent.extend(answer)
        self._of.unsent_bytes += size
        self._wait(UNREAD_S + size / LEAST_RATE)
        self._send()
        self._of.close_slow()

    def _send(self) -> None:
        while self._unsent and not self._is_full:
            piece = self._unsent.popleft()
            self._of.unsent_bytes -= len(piece)
            self._transport.write(piece)
            if self._is_full:  # the transport keeps it
                self._late_bytes = len(piece)
                self._of.unsent_bytes += len(piece)
        if self._unsent or self._is_full:
            return
        if self._is_last:
            self._transport.close()
        elif self._task is None:
            self._wait(FRAME_S if self._received or not self._session.is_known else IDLE_S)
            self._next()
