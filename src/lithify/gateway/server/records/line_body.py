"""JSON lines, as `lithify produce` takes them, as a table: parsed in parts, so that few objects are there at once."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from threading import Semaphore

import pyarrow as pa

from lithify.columnar.text.encodings import Encodings
from lithify.columnar.text.lines import LineError, parse_json
from lithify.errors import InvalidInputError

PART_LINES, PART_BYTES = 20_000, 2**20
_BLANK = frozenset((b"", b"\n", b"\r\n", b"\r"))
_few = Semaphore(2)
"""Python's objects take many times the bytes of their text; and no more threads at once would be faster."""


@dataclass(slots=True)
class _Lines:
    texts: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """From 1."""
    size_bytes: int = 0


def table_of_lines(body: bytes, encodings: Encodings) -> tuple[pa.Table, list[int]]:
    """The records, and the number of the line of each. Raises `InvalidInputError`, which names the line."""
    tables, numbers = [], list[int]()
    with _few:
        for part in _parts(body):
            try:
                tables.append(parse_json(part.texts, encodings))
            except LineError as error:
                raise InvalidInputError(
                    f"line {part.numbers[error.index]} of the body: {error.reason}", hint="nothing was appended"
                ) from None
            numbers += part.numbers
        return pa.concat_tables(tables, promote_options="default"), numbers


def _parts(body: bytes) -> Iterator[_Lines]:
    """At least one, which may be empty. Blank lines are left out."""
    part, is_first = _Lines(), True
    for number, line in enumerate(BytesIO(body.removeprefix(BOM_UTF8)), 1):
        if line in _BLANK:
            continue
        part.texts.append(line)
        part.numbers.append(number)
        part.size_bytes += len(line)
        if len(part.texts) >= PART_LINES or part.size_bytes >= PART_BYTES:
            yield part
            part, is_first = _Lines(), False
    if part.texts or is_first:
        yield part
