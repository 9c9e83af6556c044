"""A broker that answers as a real one does, but for what a test has it do otherwise: hostile, odd or broken.

    FakeBroker(lookup_topic=lambda broker, command: broker.frames(...))

An answer is bytes for the socket, or None to end the connection. What a test does not name is answered properly: the
topic is here, it has the entries that the test gives, and FLOW sends all of them.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import google_crc32c

from lithify.pulsar.client.commands_pb2 import BaseCommand
from lithify.pulsar.client.connection import command
from lithify.pulsar.client.consumer import CONSUMER
from lithify.pulsar.client.frames import framed

NAMES = {f.number: f.name for f in BaseCommand.DESCRIPTOR.fields}
METADATA = b"\x0a\x01p\x10\x00\x18\x01"
Answer = Callable[["FakeBroker", BaseCommand], bytes | None]


def entry_bytes(payload: bytes = b"v", *, checksum: int | None = None) -> bytes:
    """As a producer makes it; `checksum` is in the place of the right one."""
    content = struct.pack(">I", len(METADATA)) + METADATA + payload
    crc = google_crc32c.value(content) if checksum is None else checksum
    return b"\x0e\x01" + struct.pack(">I", crc) + content


def message_frame(ledger: int, entry: int, data: bytes) -> bytes:
    sent = command("message")
    sent.message.consumer_id = CONSUMER
    sent.message.message_id.ledger_id, sent.message.message_id.entry_id = ledger, entry
    encoded = sent.SerializeToString()
    return struct.pack(">II", 4 + len(encoded) + len(data), len(encoded)) + encoded + data


@dataclass
class FakeBroker:
    """Of the topic with these entries: ids and data."""

    entries: Sequence[tuple[int, int, bytes]] = ()
    last: tuple[int, int] | None = None
    """The last id that it claims; None: that of the last entry."""
    answers: dict[str, Answer] = field(default_factory=dict)
    seen: list[BaseCommand] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"pulsar://127.0.0.1:{self.port}"

    def of(self, name: str) -> list[BaseCommand]:
        """The commands of a kind that clients have sent."""
        return [seen for seen in self.seen if NAMES[seen.type] == name]

    def answer(self, received: BaseCommand) -> bytes | None:
        name = NAMES[received.type]
        own: Answer = self.answers.get(name) or getattr(type(self), f"on_{name}", lambda *_: b"")
        return own(self, received)

    def on_connect(self, _received: BaseCommand) -> bytes:
        made = command("connected")
        made.connected.server_version, made.connected.protocol_version = "fake", 21
        return framed(made)

    def on_lookup_topic(self, received: BaseCommand) -> bytes:
        made = command("lookup_topic_response")
        made.lookup_topic_response.request_id = received.lookup_topic.request_id
        made.lookup_topic_response.response = 1
        made.lookup_topic_response.broker_service_url = self.url
        return framed(made)

    def on_subscribe(self, received: BaseCommand) -> bytes:
        made = command("success")
        made.success.request_id = received.subscribe.request_id
        return framed(made)

    def on_get_last_message_id(self, received: BaseCommand) -> bytes:
        ledger, entry = self.last or self.entries[-1][:2]
        made = command("get_last_message_id_response")
        told = made.get_last_message_id_response
        told.request_id = received.get_last_message_id.request_id
        told.last_message_id.ledger_id, told.last_message_id.entry_id = ledger, entry
        return framed(made)

    def on_flow(self, _received: BaseCommand) -> bytes:
        start = self.of("subscribe")[-1].subscribe.start_message_id
        begin = (start.ledger_id, start.entry_id) if start.ledger_id < 1 << 63 else (-1, -1)
        return b"".join(message_frame(*entry) for entry in self.entries if entry[:2] >= begin)

    def serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError), connection.makefile("rb") as stream:
            while len(sizes := stream.read(8)) == 8:
                total, size = struct.unpack(">II", sizes)
                received = BaseCommand.FromString(stream.read(size))
                stream.read(total - 4 - size)
                self.seen.append(received)
                answer = self.answer(received)
                if answer is None:
                    return
                connection.sendall(answer)


@contextmanager
def a_fake_broker(*entries: tuple[int, int, bytes], **answers: Answer) -> Iterator[FakeBroker]:
    """Listening; every connection has a thread of its own."""
    broker = FakeBroker(entries, answers=answers)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        broker.port = listener.getsockname()[1]
        opened: list[socket.socket] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    opened.append(listener.accept()[0])
                    threading.Thread(target=broker.serve, args=(opened[-1],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield broker
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            for connection in opened:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
