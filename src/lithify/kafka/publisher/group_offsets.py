"""Positions of consumer groups as `kafka-consumer-groups` prints them: read from a file, and written for it.

--reset-offsets --export          group,topic,partition,offset       one position a line
--describe --offsets              GROUP TOPIC PARTITION CURRENT-OFFSET …   and rows below
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from lithify.errors import RefusedError
from lithify.errors.given_files import read_given

LARGEST_FILE_BYTES = 64 * 2**20
_LARGEST = 2**63 - 1
_LONGEST_LINE = 100_000
"""Below the length of a cell at which `csv` gives up."""
_SHOWN_CHARACTERS = 200
_COLUMNS = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET")
_HINT = (
    "write a line group,topic,partition,offset for each position, as kafka-consumer-groups exports several groups; "
    "for a single group it omits the name"
)


@dataclass(frozen=True, slots=True, order=True)
class GroupOffset:
    """A group has committed that offset: it has read everything below."""

    group: str
    topic: str
    partition: int
    offset: int


def read_positions(path: Path) -> tuple[GroupOffset, ...]:
    """The positions in a file. Raises `RefusedError` for another file, and for one without any."""
    try:
        text = read_given(path, LARGEST_FILE_BYTES, pipes=True).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise RefusedError(f"{path} cannot be read: {why}", hint=_HINT) from error
    try:
        positions = parse_positions(text)
    except ValueError as error:
        raise RefusedError(f"{path}: {error}", hint=_HINT) from error
    if not positions:  # as after a tool that failed: groups would begin anywhere
        hint = "export the offsets of all groups with kafka-consumer-groups, or omit the file if there are no groups"
        raise RefusedError(f"{path}: the file has no position of a group", hint=hint)
    return positions


def parse_positions(text: str) -> tuple[GroupOffset, ...]:
    """The offsets in either form, without rows that have no offset (`-`). Raises `ValueError` that names the line."""
    positions: dict[tuple[str, str, int], GroupOffset] = {}
    columns: Sequence[str] = ()
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > _LONGEST_LINE:
            raise ValueError(f"line {number} has more than {_LONGEST_LINE} characters")
        cells = line.split()
        if set(_COLUMNS) <= set(cells):
            columns = cells
        elif cells:
            in_table = columns and len(cells) >= len(columns)  # a client's id may have blanks, behind what counts
            row = dict(zip(columns, cells, strict=False)) if in_table else _of_csv(line)
            position = _position(row, f"line {number}, {line.strip()[:_SHOWN_CHARACTERS]!r},")
            if position is None:
                continue
            where = position.group, position.topic, position.partition
            if where in positions:
                named = f"{position.group[:_SHOWN_CHARACTERS]} in {position.topic[:_SHOWN_CHARACTERS]}"
                raise ValueError(f"line {number} has a second position of {named}-{position.partition}")
            positions[where] = position
    return tuple(positions.values())


def written(positions: Iterable[GroupOffset]) -> str:
    """As `--reset-offsets --from-file` reads it."""
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerows((p.group, p.topic, p.partition, p.offset) for p in sorted(positions))
    return text.getvalue()


def _of_csv(line: str) -> Mapping[str, str]:
    cells = next(csv.reader([line.rstrip("\r")]), [])
    return dict(zip(_COLUMNS, cells, strict=True)) if len(cells) == len(_COLUMNS) else {}


def _position(row: Mapping[str, str], where: str) -> GroupOffset | None:
    if not row:
        raise ValueError(f"{where} is not a position of a group")
    group, topic, partition, offset = (row[name] for name in _COLUMNS)
    if offset == "-" or partition == "-":
        return None
    numbers = [
        int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1 for text in (partition, offset)
    ]
    if not (group and topic) or min(numbers) < 0 or numbers[0] >= 2**31 or numbers[1] > _LARGEST:
        raise ValueError(f"{where} is not a position of a group")
    return GroupOffset(group, topic, *numbers)
