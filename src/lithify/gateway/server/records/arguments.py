"""What requests for records have in their query, in the words of the command line."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import msgspec

from lithify.columnar.text.encodings import Encoding, Encodings, to_bytes
from lithify.errors import InvalidInputError
from lithify.gateway.server.arguments import LARGEST
from lithify.model.cursor import AtTime, Start
from lithify.model.message import MessageId
from lithify.model.settings.units import parse_time_ms

PAGE_RECORDS = 10_000
"""The most that `max` may be."""


class Text(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How bytes are written in JSON lines."""

    encoding: Encoding = "utf-8"
    key_encoding: Encoding | None = None
    value_encoding: Encoding | None = None

    @property
    def encodings(self) -> Encodings:
        return Encodings.of(self.encoding, self.key_encoding, self.value_encoding)


class AppendQuery(Text):
    """`expected_end` is a list of PARTITION:OFFSET, where logs must end for the append to be done."""

    expected_end: list[str] = []
    keep_offsets: bool = False

    def ends(self) -> dict[int, int]:
        """By partition. Raises `InvalidInputError`."""
        ends: dict[int, int] = {}
        for given in self.expected_end:
            partition, _, offset = given.partition(":")
            if (number := _digits(partition)) is None or (end := _digits(offset)) is None or number in ends:
                raise InvalidInputError(
                    f"expected_end {given[:40]!r} is not PARTITION:OFFSET, or names a partition again",
                    hint="use one parameter for each partition, such as expected_end=0:1200",
                )
            ends[number] = end
        return ends


class KeyQuery(Text):
    """`key` is the only one that is looked for."""

    key: str | None = None

    def key_bytes(self) -> bytes | None:
        """Raises `InvalidInputError`."""
        try:
            return None if self.key is None else to_bytes(self.key.encode(), self.encodings.key)
        except ValueError as error:
            raise InvalidInputError(f"key: {error}", hint="set its encoding with key_encoding") from None


class ReadQuery(KeyQuery):
    """As the options of `lithify consume`; `cursor` is the place where an earlier page has ended."""

    start: str = msgspec.field(name="from", default="earliest")
    to: str | None = None
    partition: int | None = None
    compacted: bool = False
    version: int | None = None
    max: Annotated[int, msgspec.Meta(ge=1, le=PAGE_RECORDS)] | None = None
    cursor: str | None = None


class TableQuery(KeyQuery):
    """As the options of `lithify table`."""

    at: str | None = None
    partition: int | None = None
    version: int | None = None


def start_of(text: str) -> Start:
    """Where to start: earliest, latest, an offset, a message id or a time. Raises `InvalidInputError`."""
    if text in ("earliest", "latest"):
        return "earliest" if text == "earliest" else "latest"
    with suppress(ValueError):
        return MessageId.parsed(text)
    return _offset_or_time("from", text, "earliest, latest, an offset, LEDGER:ENTRY or a time")


def point_of(name: str, text: str) -> int | AtTime:
    """An offset or a time. Raises `InvalidInputError`."""
    return _offset_or_time(name, text, "an offset or a time")


def _offset_or_time(name: str, text: str, expected: str) -> int | AtTime:
    if (offset := _digits(text.removeprefix("-"))) is not None:
        return -offset if text.startswith("-") else offset
    try:
        return AtTime(parse_time_ms(text))
    except ValueError:
        raise InvalidInputError(
            f"{name} {text[:40]!r} is not {expected}",
            hint="a time is ISO 8601, such as 2026-01-31T12:00:00Z, or @EPOCH_MS",
        ) from None


def _digits(text: str) -> int | None:
    """A number of at most 64 bits."""
    fits = text.isascii() and text.isdecimal() and len(text) < 20
    return number if fits and (number := int(text)) <= LARGEST else None
