"""Copies the files that a replica lacks, each once and checked (C65).

    left by an earlier copy in the folder ─► its pages and facts are right ─► used
    else     pieces of the source, checked as they pass ─► file in the replica's folder ─► the same? ─► used

Data files first: a mask is not copied but written anew, as it has the path of its data file, which is another one here.

No version names a copy until the commit; until then heartbeats keep it from being swept (C45). A copy that ends early
leaves its files to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import google_crc32c

from lithify.errors import DamagedError, InsufficientSpaceError
from lithify.model.names import TopicName
from lithify.model.replicas.file_names import origin
from lithify.model.segment import Segment, without
from lithify.model.settings.units import format_bytes
from lithify.model.topic.state import TopicState
from lithify.ports.source import StopAsked
from lithify.ports.store import LogStore, Warehouse
from lithify.rules.lifecycle.mirroring import ByOrigin, Difference, by_origin, reusable
from lithify.rules.lifecycle.sweeping import run_of
from lithify.service.documents import put_heartbeat
from lithify.service.heartbeats import Heartbeats
from lithify.waits.parallel import parallel

COPIES_AT_ONCE = 4
"""Files under way at once: a few, so that one waits for the disk while another is read."""


def _unthrottled(_bytes: int) -> None:
    """No limit."""


def _goes_on() -> bool:
    return False


def _newest(store: LogStore, name: TopicName) -> TopicState:
    return store.load(name)


def _silent(_done_bytes: int, _all_bytes: int) -> None:
    """Progress that is not shown."""


@dataclass(frozen=True, slots=True)
class MirrorRequest:
    """`source` names the warehouse of the source, for people; `compact` is whether the replica compacts by itself.

    `acquire` is a throttle, called with the bytes of each piece before it is read. `tell` gets the bytes that are done
    and the bytes to do. Once `stops` is true the copy ends soon, and commits nothing. All are called from several
    threads. `load` returns the version of the source to copy, the newest, each time that the copy begins again.
    """

    source: str
    acquire: Callable[[int], None] = _unthrottled
    stops: Callable[[], bool] = _goes_on
    tell: Callable[[int, int], None] = _silent
    compact: bool = False
    load: Callable[[LogStore, TopicName], TopicState] = _newest


@dataclass(frozen=True, slots=True)
class Copies:
    """Files of the source as the replica is to name them; and files of the source that were copied, or were there."""

    by_origin: ByOrigin
    copied: tuple[Segment, ...] = ()
    reused: tuple[Segment, ...] = ()


def copy_files(
    source: Warehouse,
    target: Warehouse,
    state: TopicState,
    difference: Difference,
    run_id: str,
    request: MirrorRequest,
) -> Copies:
    """Copies what is lacking of the source into the folder of `state`, the replica at the version to commit on.

    Raises `StopAsked`, `DamagedError` which names the file, `InsufficientSpaceError` or `WarehouseError`.
    """
    wanted = difference.to_copy
    if not wanted:
        return Copies({})
    work = _Work(source, target, state, run_id, request, sum(segment.id_bytes for segment in wanted))
    left = work.left_behind(wanted)
    files = by_origin(work.reused([segment for segment in left.values() if segment.mask is None]))
    missing = [segment for segment in wanted if origin(segment.id) not in files]
    work.check_space(sum(segment.id_bytes for segment in missing))
    files = {**files, **by_origin(parallel(work.copied, [s for s in missing if s.mask is None], COPIES_AT_ONCE))}
    there = {**difference.known, **files}

    def mask(segment: Segment) -> Segment:
        return work.mask(segment, there[origin(segment.path)], left.get(origin(segment.id)))

    masks = tuple(parallel(mask, [s for s in missing if s.mask is not None], COPIES_AT_ONCE))
    copies = {**files, **{origin(segment.id): segment for segment in masks}}
    copied = tuple(segment for segment in wanted if run_of(copies[origin(segment.id)].id) == run_id)
    return Copies(copies, copied, without(wanted, copied))


def checksum(pieces: Iterable[bytes]) -> int:
    """The CRC32C of a whole file."""
    crc32c = 0
    for piece in pieces:
        crc32c = google_crc32c.extend(crc32c, piece)
    return crc32c


class _Work:
    """Copies into one replica, by one run."""

    def __init__(
        self,
        source: Warehouse,
        target: Warehouse,
        state: TopicState,
        run_id: str,
        request: MirrorRequest,
        all_bytes: int,
    ) -> None:
        self._source, self._target, self._state = source, target, state
        self._run_id, self._request, self._all_bytes = run_id, request, all_bytes
        self._heartbeats = Heartbeats(target, [(state, run_id)])
        self._done_bytes = 0
        self._lock = Lock()

    def left_behind(self, wanted: Sequence[Segment]) -> ByOrigin:
        """What earlier copies may have left of these files, which no sweep takes from now on."""
        target, state = self._target, self._state
        stored = tuple(target.store.stored_files(state))
        left = reusable(stored, wanted, state.abandoned)
        if not left:
            return {}
        named = target.store.named_files(state.name)
        closings = target.store.closings(state, stored, target.clock.now_ms())
        left = tuple(s for s in left if s.id not in named and s.id not in closings)  # no file is named twice
        runs = sorted({run_of(segment.id) for segment in left})
        for run_id in runs:
            put_heartbeat(target.store, state, run_id)  # its files may be old enough to be swept
        self._heartbeats = Heartbeats(target, [(state, run_id) for run_id in (self._run_id, *runs)])
        return {origin(segment.id): segment for segment in left}

    def reused(self, left: Iterable[Segment]) -> Iterator[Segment]:
        """The data files of `left` that are right; they are read whole."""
        for segment in left:
            self._go_on(0)
            if not self._target.files.findings(segment):
                self._done(segment.size_bytes)
                yield segment

    def check_space(self, needed_bytes: int) -> None:
        """Raises `InsufficientSpaceError` if the target's disk has less."""
        free = self._target.files.free_bytes(self._state)
        if free is not None and free < needed_bytes:
            raise InsufficientSpaceError(
                f"{self._state.name}: the copy needs {format_bytes(needed_bytes)}, but the disk of the replica has "
                f"{format_bytes(free)} free",
                hint="free some space there; nothing was changed",
            )

    def copied(self, segment: Segment) -> Segment:
        """The copy of a file whose pages and facts are right, read again and found to be the same."""
        crc32c = 0

        def pieces() -> Iterator[bytes]:
            nonlocal crc32c
            for piece in self._source.files.checked_pieces(segment):
                self._go_on(len(piece))
                crc32c = google_crc32c.extend(crc32c, piece)
                yield piece
                self._done(len(piece))

        copy = self._target.files.copy(self._state, segment, pieces(), self._run_id)
        if checksum(self._target.files.pieces(copy)) != crc32c:
            raise _not_as_written(copy)
        return copy

    def mask(self, segment: Segment, file: Segment, left: Segment | None) -> Segment:
        """`file` of the replica with a mask of its own, which hides what the mask of the source's `segment` hides.

        It is the one that an earlier copy has left, if that is one of this file, and right.
        """
        self._go_on(segment.id_bytes)
        files, hidden = self._target.files, self._source.files.hidden(segment)
        copy = None if left is None else replace(left, path=file.path)
        if copy is None or not self._hides(copy, hidden):
            copy = files.copy_mask(self._state, replace(segment, path=file.path), hidden, self._run_id)
            if not self._hides(copy, hidden):
                raise _not_as_written(copy)
        self._done(segment.id_bytes)
        return copy

    def _hides(self, copy: Segment, hidden: object) -> bool:
        try:
            return bool(self._target.files.hidden(copy) == hidden)
        except DamagedError:
            return False

    def _go_on(self, size_bytes: int) -> None:
        if self._request.stops():
            raise StopAsked
        self._request.acquire(size_bytes)
        self._heartbeats.beat()

    def _done(self, size_bytes: int) -> None:
        with self._lock:
            self._done_bytes += size_bytes
            self._request.tell(self._done_bytes, self._all_bytes)


def _not_as_written(copy: Segment) -> DamagedError:
    return DamagedError(
        f"{copy.id}: the copy does not match what was written when it is read again",
        hint="check the disk or store of the replica; the next copy writes a new file; nothing was changed",
    )
