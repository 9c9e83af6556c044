"""A segment's file as it is stored, read and written in pieces: for copies of it elsewhere (C65)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from lithify.columnar.files.access import FileAccess, local_path
from lithify.columnar.files.durable import make_lasting
from lithify.columnar.segment.checked_file import RESTORE, damage_named
from lithify.columnar.segment.facts import wrong_facts
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.errors import DamagedError, LithifyError
from lithify.model.segment import Segment

LOCAL_BYTES = 2**20
WRITE_BYTES = 256 * 2**10
"""Writing more than that to a local disk at once was measured to take up to four times the processor time."""
REMOTE_BYTES = 8 * 2**20
"""The size of a piece in an object store: each is a request."""


def stored_pieces(access: FileAccess, segment: Segment) -> Iterator[bytes]:
    """The bytes of a file. Raises `DamagedError` if it cannot be read, or does not have its size in the metadata."""
    at, most = 0, REMOTE_BYTES if local_path(segment.path) is None else LOCAL_BYTES
    with damage_named(segment.path), access.open(segment.path) as source:
        while piece := bytes(source.read(most)):
            at += len(piece)
            if at > segment.size_bytes:
                break
            yield piece
    if at != segment.size_bytes:
        amount = "more" if at > segment.size_bytes else f"only {at}"
        raise DamagedError(
            f"{segment.path}: holds {amount} bytes, but the metadata has {segment.size_bytes}",
            hint=RESTORE,
        )


def checked_pieces(access: FileAccess, segment: Segment) -> Iterator[bytes]:
    """The same, checked while they pass (C8): the footer's facts first, then by checksums pages and what is behind.

    Raises `DamagedError`; once the last piece was taken, the file was what the metadata says.
    """
    with SegmentReader(access, segment.unmasked) as reader:
        for finding in wrong_facts(segment, reader.facts()):
            raise DamagedError(finding.message, hint=RESTORE)
        pages, end = reader.page_sums(), reader.end_sum()
    with damage_named(segment.path):
        yield from pages.pass_on(end.pass_on(stored_pieces(access, segment)))


def write_pieces(access: FileAccess, path: str, pieces: Iterable[bytes]) -> None:
    """Writes a new file that survives a power cut (C6); after an error it is removed, so that retries leave no heap.

    Raises `OSError` or `WarehouseError`, and what `pieces` raises.
    """
    sink = access.create(path)
    try:
        for piece in pieces:  # no `start_writing`: it evicts what is read again right after
            for start in range(0, len(piece), WRITE_BYTES):
                sink.write(memoryview(piece)[start : start + WRITE_BYTES])
    except BaseException:
        with suppress(OSError, LithifyError):
            sink.close()
        with suppress(OSError, LithifyError):
            access.delete(path)
        raise
    sink.close()
    make_lasting(path)
