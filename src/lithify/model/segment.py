"""A segment: one immutable data file that holds a contiguous run of one log.

    offsets   base_offset ................ end_offset (exclusive)
    file      |  records, ascending offsets, gaps allowed  |
    mask      |    x          x x             x            |      the positions of dead records, if it has one

A round that finds few dead records in a segment leaves the file as it is, and writes a mask. Iceberg calls it a
position delete file. All readers pass over masked records: a segment has the other ones.

The facts of a segment that the table's manifests have, so that its file need not be opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from lithify.model.message import EnvelopeFacts

INDEX_BYTES, INDEX_BYTES_PER_KEY = 2**18, 8
"""Of an index of keys, with the lists of pages, at most."""


@dataclass(frozen=True, slots=True)
class Mask:
    """The file with all dead positions of one segment, and their number. It is removed with its segment."""

    path: str
    size_bytes: int
    dead: int


@dataclass(frozen=True, slots=True)
class Segment:
    """The facts of one data file. Sizes in bytes (compressed), timestamps in epoch ms.

    Bounds and numbers of nulls belong to the file: a segment with a mask may have fewer.
    """

    path: str
    partition: int
    base_offset: int
    end_offset: int
    records: int
    """The records that are not masked."""
    size_bytes: int
    scan_bytes: int
    """Compressed size of the columns that the key pass reads: key, offset, value size."""
    min_timestamp_ms: int
    max_timestamp_ms: int
    null_keys: int
    null_values: int
    min_value_size: int | None
    """Smallest size of a non-null value; `None` if every value is null."""
    min_key: bytes | None
    """A lower bound of the keys, perhaps a prefix; `None` if no record has a key."""
    max_key: bytes | None
    """An upper bound of the keys, perhaps longer than any; `None` if unknown."""
    envelopes: EnvelopeFacts | None = None
    """Of a topic that keeps Pulsar's message ids (C52), else None."""
    only_chunks: bool = field(default=False, compare=False)
    """All entries that are passed through are chunks (C53). False: not all, or it is not known. Manifests of earlier
    versions do not have it, so two segments do not differ by it alone."""
    keys_indexed: bool = field(default=False, compare=False)
    """The file has an index of its keys. False: it has none, or it is not known, as with `only_chunks`."""
    mask: Mask | None = None

    @property
    def most_scan_bytes(self) -> int:
        """What the key pass reads at most of these columns, and of the index of keys if there is one."""
        return self.scan_bytes + (INDEX_BYTES + INDEX_BYTES_PER_KEY * self.records_in_file) * self.keys_indexed

    @property
    def id(self) -> str:
        """What tells it from all others, also from the same file with another mask: the path of its newest file."""
        return self.path if self.mask is None else self.mask.path

    @property
    def id_bytes(self) -> int:
        """The size of that file."""
        return self.size_bytes if self.mask is None else self.mask.size_bytes

    @property
    def records_in_file(self) -> int:
        """With those that are masked."""
        return self.records + (0 if self.mask is None else self.mask.dead)

    @property
    def mask_bytes(self) -> int:
        """What is read to know which records are left."""
        return 0 if self.mask is None else self.mask.size_bytes

    @property
    def unmasked(self) -> Segment:
        """Its file, with all records."""
        return replace(self, records=self.records_in_file, mask=None)

    @property
    def passed_through(self) -> int:
        """Whole entries of Pulsar that compaction cannot decode (C53)."""
        return 0 if self.envelopes is None else self.envelopes.passed_through

    @property
    def chunks(self) -> int:
        """Entries passed through that hide values of one key each; the others may hide values of any (C53)."""
        return self.passed_through if self.only_chunks else 0

    @property
    def sealed(self) -> int:
        """Entries passed through that may hide values of any key."""
        return self.passed_through - self.chunks

    @property
    def droppable_keyless(self) -> int:
        """Records without a key that a round may drop: those passed through remain (C16, C53)."""
        return self.null_keys - self.passed_through

    def may_hold_tombstones(self, *, empty_is_tombstone: bool) -> bool:
        """Whether a record here deletes its key, as far as metadata shows (C17)."""
        return self.null_values > 0 or (empty_is_tombstone and self.min_value_size == 0)


@dataclass(frozen=True, slots=True)
class Volume:
    """A number of records, their compressed size, and how many of them are whole entries of Pulsar (C53)."""

    records: int = 0
    size_bytes: int = 0
    passed_through: int = 0
    chunks: int = field(default=0, compare=False)
    """Of these, chunks in segments that have no other entries; earlier versions do not count them."""

    @property
    def sealed(self) -> int:
        """Entries that may hide values of any key."""
        return self.passed_through - self.chunks

    def __add__(self, other: Volume) -> Volume:
        return Volume(
            self.records + other.records,
            self.size_bytes + other.size_bytes,
            self.passed_through + other.passed_through,
            self.chunks + other.chunks,
        )


def without(segments: tuple[Segment, ...], others: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """`segments` without `others`; a segment with another mask is another one."""
    ids = {segment.id for segment in others}
    return tuple(segment for segment in segments if segment.id not in ids)


def volume_of(segments: tuple[Segment, ...]) -> Volume:
    return Volume(
        sum(s.records for s in segments),
        sum(s.size_bytes for s in segments),
        sum(s.passed_through for s in segments),
        sum(s.chunks for s in segments),
    )


def segments_of(segments: tuple[Segment, ...], partition: int) -> tuple[Segment, ...]:
    """The segments of one log in offset order."""
    return tuple(sorted((s for s in segments if s.partition == partition), key=lambda s: s.base_offset))


def by_partition(segments: Iterable[Segment]) -> dict[int, tuple[Segment, ...]]:
    """The same of all logs that have any, in one pass: for each log of a topic by itself it would be quadratic."""
    logs: dict[int, list[Segment]] = {}
    for segment in segments:
        logs.setdefault(segment.partition, []).append(segment)
    return {partition: tuple(sorted(log, key=lambda s: s.base_offset)) for partition, log in logs.items()}


def by_file(segments: Iterable[Segment]) -> dict[str, Segment]:
    """By path, the files of segments, each once: a data file as its segment without a mask, a mask as that with it."""
    files: dict[str, Segment] = {}
    for segment in segments:
        files[segment.path] = segment.unmasked
        files[segment.id] = segment
    return files


def records_left(segments: Iterable[Segment]) -> int:
    """The records that segments have in all. If several have the same file, the one with the most records counts."""
    left: dict[str, int] = {}
    for segment in segments:
        left[segment.path] = max(segment.records, left.get(segment.path, 0))
    return sum(left.values())


def sizes_of(segments: Iterable[Segment]) -> dict[str, int]:
    """By path, the sizes of the files of these segments and of their masks, each once."""
    sizes: dict[str, int] = {}
    for segment in segments:
        sizes[segment.path] = segment.size_bytes
        if segment.mask is not None:
            sizes[segment.mask.path] = segment.mask.size_bytes
    return sizes
