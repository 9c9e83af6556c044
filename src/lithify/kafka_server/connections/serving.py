"""The listener on a thread, with an event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from socket import socket
from ssl import SSLContext
from threading import Thread

from lithify.kafka_server.connections.connection import Connection, Connections

LATE_S = 0.5
"""Between two looks for connections that have waited for too long."""
END_S = 3.0


@dataclass(slots=True)
class KafkaServing:
    """Serves until `close`. `begin` makes what answers, on the event loop; `taken` listens already.

    What runs `beside` it, on the same loop, is entered before clients come, and left when none is there any more.
    """

    taken: socket
    begin: Callable[[], Connections]
    make_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.SelectorEventLoop
    tls: SSLContext | None = None
    beside: AbstractAsyncContextManager[object] = field(default_factory=nullcontext)
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _running: tuple[asyncio.AbstractEventLoop, Thread] | None = None

    def start(self) -> None:
        loop = self.make_loop()
        thread = Thread(target=self._run, args=(loop,), name="kafka", daemon=True)
        self._running = loop, thread
        thread.start()

    def close(self) -> None:
        """Ends it: clients find their connections closed, and go to another gateway."""
        if self._running is not None:
            loop, thread = self._running
            with suppress(RuntimeError):  # it has ended already
                loop.call_soon_threadsafe(self._stopped.set)
            thread.join(END_S)
        with suppress(OSError):
            self.taken.close()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with self.beside:
            await self._answer(self.begin())

    async def _answer(self, connections: Connections) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(connections), sock=self.taken, ssl=self.tls)
        while not self._stopped.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), LATE_S)
            connections.close_late(loop.time())
        server.close()
        for connection in [*connections.all]:
            connection.give_up()
