"""Reads and checks the footer of a Parquet file before Arrow uses it (C51).

    [ PAR1 | column chunks of row group 0 | ... | footer | its length | PAR1 ]
                    ▲ start, size, values ────────┘

Arrow trusts a footer: it allocates what that declares, and an inconsistent one crashes the process. So the
footer is first parsed to plain values and compared with the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lithify.columnar.parquet.thrift import Struct, ThriftError, read_struct

FOOTER_BYTES = 8 * 2**20
"""Size limit of a footer: some 5,000 row groups of eight columns."""
TAIL_BYTES = 64 * 2**10
"""Bytes of the first read, which nearly always contains the whole footer."""

BYTE_ARRAY = 6
"""The physical type of keys and values, the only one of variable size that segments use."""

MAGIC = b"PAR1"
END_BYTES = 4 + len(MAGIC)
"""Behind a footer: its length, and the magic number."""
_REQUIRED, _REPEATED = 0, 2


class UnsoundFileError(ValueError):
    """A Parquet file that is inconsistent, or would need too much memory."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column chunk: its byte range in the file, its physical type and its number of values.

    `first_data_page` is where that is, behind a dictionary if there is one. The other values come from the footer:
    `expanded_bytes` is the uncompressed size of its pages with their headers, and `page_counts` their number by kind
    and encoding. `offset_index` is the place and the size of the list of its pages, if the file has one.
    """

    start: int
    size_bytes: int
    expanded_bytes: int
    values: int
    kind: int
    repeated: bool
    codec: int
    first_data_page: int
    page_counts: Mapping[tuple[int, int], int]
    optional: bool
    offset_index: tuple[int, int] | None

    @property
    def of_bytes(self) -> bool:
        """Whether its values have various sizes."""
        return self.kind == BYTE_ARRAY

    @property
    def end(self) -> int:
        return self.start + self.size_bytes


@dataclass(frozen=True, slots=True)
class Footer:
    """A checked footer, which begins at byte `start`. `chunks` has, for each row group, its column chunks by path.

    A row group without records has no chunks: writers say nothing true of their places.
    """

    metadata: pq.FileMetaData
    size_bytes: int
    start: int
    chunks: tuple[dict[str, Chunk], ...]

    def of_columns(self, row_group: int, columns: Sequence[str]) -> dict[str, Chunk]:
        """The chunks of these top-level columns of a row group, with all leaves of nested ones."""
        return {path: c for path, c in self.chunks[row_group].items() if path.partition(".")[0] in columns}


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column of values: with `levels`, the highest of repetition and of definition."""

    path: str
    kind: int
    levels: tuple[int, int]

    @property
    def repeated(self) -> bool:
        return self.levels[0] > 0


def read_footer(source: Any) -> Footer:
    """The footer of an open file. Raises `UnsoundFileError` or `OSError`."""
    size = source.seek(0, 2)
    raw = raw_footer(source, size)
    try:
        metadata, _ = read_struct(raw)
        leaves = tuple(_leaves(_structs(metadata, 2)))
        groups = _structs(metadata, 4)
        start = size - len(raw) - END_BYTES
        chunks = tuple(_chunks(group, leaves, start) for group in groups)
    except ThriftError as error:
        raise UnsoundFileError(f"its footer is damaged: {error}") from None
    if sum(_number(group, 3) for group in groups) != _number(metadata, 3):
        raise UnsoundFileError("the records of its row groups do not match its footer")
    _check_apart(chunk for group in chunks for chunk in group.values())
    whole = MAGIC + raw + len(raw).to_bytes(4, "little") + MAGIC
    return Footer(pq.read_metadata(pa.BufferReader(whole)), size, start, chunks)


def raw_footer(source: Any, size: int) -> bytes:
    """The bytes of the footer of an open file of this size. Raises `UnsoundFileError` or `OSError`."""
    source.seek(max(0, size - TAIL_BYTES))
    tail = bytes(source.read(min(size, TAIL_BYTES)))
    if len(tail) < len(MAGIC) + END_BYTES or not tail.endswith(MAGIC):
        raise UnsoundFileError("it does not end like a Parquet file")
    length = int.from_bytes(tail[-END_BYTES : -len(MAGIC)], "little")
    if length > size - END_BYTES - len(MAGIC):
        raise UnsoundFileError(f"it claims a footer of {length} bytes but has {size} in all")
    if length > FOOTER_BYTES:
        raise UnsoundFileError(
            f"its footer has {length} bytes, but at most {FOOTER_BYTES} are read: it has too many row groups"
        )
    if length + END_BYTES > len(tail):
        source.seek(size - END_BYTES - length)
        return bytes(source.read(length))
    return tail[-END_BYTES - length : -END_BYTES]


def _leaves(elements: list[Struct]) -> Iterator[_Leaf]:
    """The leaf columns of a schema, which Parquet stores as a list with each parent before its children."""
    open_parents: list[list[Any]] = []  # [path, children to come, (repetition, definition) of it]
    for element in elements:
        while open_parents and open_parents[-1][1] == 0:
            open_parents.pop()
        name = element.get(4)
        if not isinstance(name, bytes):
            raise UnsoundFileError("a column of its schema has no name")
        above, (repeats, defines) = ("", (0, 0)) if not open_parents else (open_parents[-1][0], open_parents[-1][2])
        at_root = element is elements[0]
        path = "" if at_root else f"{above}.{name.decode(errors='replace')}".removeprefix(".")
        kind = element.get(3) if not at_root else _REQUIRED
        levels = repeats + (kind == _REPEATED), defines + (kind != _REQUIRED)
        if open_parents:
            open_parents[-1][1] -= 1
        elif not at_root:
            raise UnsoundFileError("its schema has a column without a parent")
        if element.get(5):
            open_parents.append([path, _number(element, 5), levels])
        elif not at_root:
            yield _Leaf(path, _number(element, 1), levels)
    if any(parent[1] for parent in open_parents):
        raise UnsoundFileError("its schema ends before its columns do")


def _chunks(group: Struct, leaves: tuple[_Leaf, ...], data_end: int) -> dict[str, Chunk]:
    """The chunks of a row group. Without records it does not have any, and their places in its footer are not read."""
    rows, columns = _number(group, 3), _structs(group, 1)
    if len(columns) != len(leaves):
        raise UnsoundFileError(f"a row group has {len(columns)} columns, but its schema has {len(leaves)}")
    known = [(leaf, column, _facts(column.get(3), leaf, rows)) for leaf, column in zip(leaves, columns, strict=True)]
    return {leaf.path: _chunk(facts, leaf, data_end, column) for leaf, column, facts in known} if rows else {}


def _facts(given: Any, leaf: _Leaf, rows: int) -> Struct:
    """What the footer says of a column chunk, which is one of this column and has a value for each record at least."""
    facts: Struct = given if isinstance(given, dict) else {}
    path = facts.get(3)
    if not isinstance(path, list) or b".".join(p for p in path if isinstance(p, bytes)) != leaf.path.encode():
        raise UnsoundFileError(f"a row group has another column in place of {leaf.path}")
    if _number(facts, 1) != leaf.kind:
        raise UnsoundFileError(f"the type of {leaf.path} in a row group differs from its schema")
    values = _number(facts, 5)
    if values < rows or (values > rows and not (leaf.repeated and rows)):
        raise UnsoundFileError(f"a row group of {rows} records has {values} values of {leaf.path}")
    if leaf.kind != BYTE_ARRAY:
        _check_bounds(facts.get(12, {}), leaf)
    _check_histograms(facts.get(16, {}), leaf)
    return facts


def _chunk(facts: Struct, leaf: _Leaf, data_end: int, column: Struct) -> Chunk:
    size, first_data_page = _number(facts, 7), _number(facts, 9)
    start = first_data_page
    if dictionary := _number(facts, 11) if 11 in facts else 0:
        if dictionary >= start:
            raise UnsoundFileError(f"a row group has the dictionary of {leaf.path} after its values")
        start = dictionary
    if start < len(MAGIC) or start + size > data_end:
        raise UnsoundFileError(f"a row group has {leaf.path} outside of the file")
    return Chunk(
        start,
        size,
        _number(facts, 6),
        _number(facts, 5),
        kind=leaf.kind,
        repeated=leaf.repeated,
        codec=_number(facts, 4),
        first_data_page=first_data_page,
        page_counts=_page_counts(facts),
        optional=leaf.levels[1] > 0,
        offset_index=_offset_index(column, leaf, data_end),
    )


def _offset_index(column: Struct, leaf: _Leaf, data_end: int) -> tuple[int, int] | None:
    if 4 not in column:
        return None
    start, size = _number(column, 4), _number(column, 5)
    if start + size > data_end:
        raise UnsoundFileError(f"a row group has the list of pages of {leaf.path} outside of the file")
    return start, size


def _page_counts(facts: Struct) -> dict[tuple[int, int], int]:
    """Empty if the footer does not list them, which other programs may leave out."""
    listed = _structs(facts, 13) if 13 in facts else []
    return {(_number(one, 1), _number(one, 2)): _number(one, 3) for one in listed}


def _check_bounds(statistics: Any, leaf: _Leaf) -> None:
    """Footers store the bounds of numbers twice, and readers skip row groups by them: both must agree."""
    if not isinstance(statistics, dict):
        raise UnsoundFileError(f"a row group has statistics of {leaf.path} that are not a struct")
    for old, new in ((1, 5), (2, 6)):
        if old in statistics and new in statistics and statistics[old] != statistics[new]:
            raise UnsoundFileError(f"a row group has two different bounds of {leaf.path}")


def _check_histograms(sizes: Any, leaf: _Leaf) -> None:
    """Arrow ends the process where the counts of levels are not one for each level, or none."""
    for field, highest in zip((2, 3), leaf.levels, strict=True):
        counts = sizes.get(field, []) if isinstance(sizes, dict) else None
        if not isinstance(counts, list) or len(counts) not in (0, highest + 1):
            raise UnsoundFileError(f"a row group has counts of the levels of {leaf.path} that do not match its levels")


def _check_apart(chunks: Iterable[Chunk]) -> None:
    """No two chunks may overlap; else a wrong position could point to valid data of another row group."""
    in_order = sorted(chunks, key=lambda chunk: chunk.start)
    if any(before.end > after.start for before, after in pairwise(in_order)):
        raise UnsoundFileError("two of its columns overlap")


def _number(struct: Struct, field: int) -> int:
    number = struct.get(field)
    if type(number) is not int or number < 0:
        raise UnsoundFileError(f"a number of its footer (field {field}) is missing or negative")
    return number


def _structs(struct: Struct, field: int) -> list[Struct]:
    structs = struct.get(field)
    if not isinstance(structs, list) or not all(isinstance(one, dict) for one in structs):
        raise UnsoundFileError(f"a list of its footer (field {field}) is missing")
    return structs
