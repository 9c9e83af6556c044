"""Copies the files that a replica lacks, each once and checked (C65).

    left by an earlier copy in the folder ─► its pages and facts are right ─► used
    else     pieces of the source, checked as they pass ─► file in the replica's folder ─► the same? ─► used

No version names a copy until the commit; until then heartbeats keep it from being swept (C45). A copy that ends early
leaves its files to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import google_crc32c

from lithify.errors import DamagedError, InsufficientSpaceError
from lithify.model.names import TopicName
from lithify.model.replicas.file_names import origin
from lithify.model.segment import Segment
from lithify.model.settings.units import format_bytes
from lithify.model.topic.state import TopicState
from lithify.ports.source import StopAsked
from lithify.ports.store import LogStore, Warehouse
from lithify.rules.lifecycle.mirroring import reusable
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

    `acquire` is a throttle, called with the bytes of each piece before it is read; `tell` gets the bytes that are done
    and those to do; once `stops` is true the copy ends soon, and commits nothing. All are called from several threads.
    `load` gives the version of the source to copy, the newest, each time that the copy begins anew.
    """

    source: str
    acquire: Callable[[int], None] = _unthrottled
    stops: Callable[[], bool] = _goes_on
    tell: Callable[[int, int], None] = _silent
    compact: bool = False
    load: Callable[[LogStore, TopicName], TopicState] = _newest


@dataclass(frozen=True, slots=True)
class Copies:
    """Files of the source as the replica is to name them."""

    by_origin: Mapping[str, Segment]
    copied: tuple[Segment, ...] = ()
    reused: tuple[Segment, ...] = ()


def copy_files(
    source: Warehouse,
    target: Warehouse,
    state: TopicState,
    wanted: Sequence[Segment],
    run_id: str,
    request: MirrorRequest,
) -> Copies:
    """Copies `wanted` files of the source into the folder of `state`, the replica at the version to commit on.

    Raises `StopAsked`, `DamagedError` which names the file, `InsufficientSpaceError` or `WarehouseError`.
    """
    if not wanted:
        return Copies({})
    work = _Work(source, target, state, run_id, request, sum(segment.size_bytes for segment in wanted))
    reused = tuple(work.reused(wanted))
    there = {origin(segment.path): segment for segment in reused}
    missing = [segment for segment in wanted if origin(segment.path) not in there]
    work.check_space(sum(segment.size_bytes for segment in missing))
    copied = tuple(parallel(work.copied, missing, COPIES_AT_ONCE))
    return Copies({**there, **{origin(segment.path): segment for segment in copied}}, copied, reused)


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

    def reused(self, wanted: Sequence[Segment]) -> Iterator[Segment]:
        """What earlier copies have left of these files, read whole and found to be right."""
        target, state = self._target, self._state
        stored = tuple(target.store.stored_files(state))
        left = reusable(stored, wanted, state.abandoned)
        if not left:
            return
        named = target.store.named_files(state.name)
        closings = target.store.closings(state, stored, target.clock.now_ms())
        left = tuple(s for s in left if s.path not in named and s.path not in closings)  # no file is named twice
        runs = sorted({run_of(segment.path) for segment in left})
        for run_id in runs:
            put_heartbeat(target.store, state, run_id)  # its files may be old enough to be swept
        self._heartbeats = Heartbeats(target, [(state, run_id) for run_id in (self._run_id, *runs)])
        for segment in left:
            self._go_on(0)
            if not target.files.findings(segment):
                self._done(segment.size_bytes)
                yield segment

    def check_space(self, needed_bytes: int) -> None:
        """Raises `InsufficientSpaceError` if the target's disk has less."""
        free = self._target.files.free_bytes(self._state)
        if free is not None and free < needed_bytes:
            raise InsufficientSpaceError(
                f"{self._state.name}: the copy needs {format_bytes(needed_bytes)}, and where the replica is there are "
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
            raise DamagedError(
                f"{copy.path}: the copy, read again, is not what was written",
                hint="check the disk or store of the replica; the next copy writes a new file; nothing was changed",
            )
        return copy

    def _go_on(self, size_bytes: int) -> None:
        if self._request.stops():
            raise StopAsked
        self._request.acquire(size_bytes)
        self._heartbeats.beat()

    def _done(self, size_bytes: int) -> None:
        with self._lock:
            self._done_bytes += size_bytes
            self._request.tell(self._done_bytes, self._all_bytes)
