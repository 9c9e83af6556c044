"""Rounds of a partition as Spark's tasks do them, one after the other in this process."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from lithify.columnar.files.spilled import spill_file
from lithify.columnar.key_hash import HashRange, KeyHash, ranges_of
from lithify.columnar.keypass.key_blocks import Spool
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.pace import unthrottled
from lithify.columnar.segment.dead_records import DeadRecords
from lithify.ports.pulsar.views import EntryRange
from lithify.pulsar.rounds.arrived_keys import ArrivedKeys
from lithify.pulsar.rounds.entry_ranks import range_starts
from lithify.pulsar.rounds.entry_reader import EntryReader
from lithify.pulsar.rounds.entry_scan import EntryScan, numbered
from lithify.pulsar.rounds.kept import KeptEntries
from lithify.pulsar.rounds.one_task import OneTaskRound
from lithify.pulsar.rounds.round_messages import RoundRules
from lithify.pulsar.rounds.view_writing import ViewWriting, view_range

SEED = "secret"
MEMORY_BYTES = 2**24


def shuffled_round(
    reader: EntryReader, ranges: Sequence[EntryRange], rules: RoundRules, *, hash_ranges: int = 2
) -> list[bytes]:
    """The framed entries of the view, as the key pass with a shuffle leaves it."""
    parts = numbered(ranges)
    finder = WinnerFinder(MEMORY_BYTES, SEED)
    with tempfile.TemporaryDirectory() as folder:
        arrived = [ArrivedKeys(rules, len(parts), Spool(Path(folder) / str(index))) for index in range(hash_ranges)]
        dead = DeadRecords(range_starts(len(parts)))
        scans = {}
        for one in reversed(parts):  # a shuffle delivers in any order
            scans[one.number] = scan = EntryScan(reader, [one], rules)
            portion = one.portion(rules)
            for index, block in finder.blocks(scan.keys(portion), hash_ranges):
                arrived[index].spool.add(block, portion, one.number)
            for index, some in enumerate(arrived):
                some.unsettled.sealed += scan.unsettled.sealed
                some.unsettled.chunks += [
                    placed for placed in scan.unsettled.chunks if chunk_range(placed.chunk.key, hash_ranges) == index
                ]
            dead.update(scan.dead)
        for index, some in enumerate(arrived):
            _tally, found = some.find(finder, HashRange(index, hash_ranges))
            dead.update(found)
    written: list[bytes] = []
    writing = ViewWriting(reader, rules, written.extend)
    for one in parts:
        writing.write(view_range(one, rules, dead.by_segment().get(one.number), scans[one.number].read[one.number]))
    return written


def chunk_range(key: bytes | None, hash_ranges: int) -> int:
    import pyarrow as pa

    return int(ranges_of(KeyHash(SEED)(pa.array([key or b""], pa.binary())), hash_ranges)[0])


def lone_round(reader: EntryReader, ranges: Sequence[EntryRange], rules: RoundRules) -> list[bytes]:
    """The same by one task alone. Raises `NeedsShuffleError`."""
    written: list[bytes] = []
    with spill_file() as file:
        kept = KeptEntries(reader, file)
        writing = ViewWriting(kept, rules, written.extend)
        for part in OneTaskRound(MEMORY_BYTES, SEED).judge(kept, rules, numbered(ranges), unthrottled):
            writing.write(part)
    return written
