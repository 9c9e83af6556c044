"""The inspector that is right by definition: whole versions in plain Python, for the memory store.

Winners come from the oracle (`compaction.survivors`); everything else compares two dicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import pairwise

from lithify.model.finding import Finding, FindingKind
from lithify.model.record import Record, is_tombstone
from lithify.model.segment import Segment
from lithify.ports.engine import Progress
from lithify.ports.inspector import InspectionResult, RecordFinding
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.compaction.survivors import survivors
from lithify.rules.proof.inspection import InspectedSegment
from lithify.rules.proof.transition import Proof
from lithify.testing.memory_files import MemoryFiles
from lithify.testing.memory_segments import segment_of

ByOffset = dict[int, list[Record]]


class OracleInspector:
    """`Inspector` over the memory store's files."""

    def __init__(self, files: MemoryFiles) -> None:
        self._files = files

    def inspect(
        self,
        segments: Sequence[InspectedSegment],
        proofs: Sequence[Proof],
        most: int,
        progress: Progress,
    ) -> InspectionResult:
        findings = [f for s in segments for f in self._file_findings(s.segment)]
        records = [r for number in range(len(proofs)) for r in self._compare(number, proofs[number], segments)]
        return InspectionResult(tuple(findings), tuple(records[: most + 1]), self._tombstones(segments))

    def _file_findings(self, segment: Segment) -> Iterator[Finding]:
        yield from file_findings(segment.unmasked, self._files.data.get(segment.path))
        if segment.mask is not None and self._files.records_of(segment) is None:
            yield Finding(segment.partition, FindingKind.FILE_MISSING, "the mask is missing", path=segment.mask.path)

    def _records(self, segment: Segment) -> Sequence[Record]:
        return self._files.records_of(segment) or ()

    def _tombstones(self, segments: Sequence[InspectedSegment]) -> dict[int, tuple[int, ...]]:
        totals: dict[int, list[int]] = {}
        for inspected in segments:
            count = inspected.count
            if count is None:
                continue
            total = totals.setdefault(inspected.segment.partition, [0] * (len(count.step_ends) + 1))
            for record in self._records(inspected.segment):
                deletes = record.value is None or (count.empty_is_tombstone and not record.value)
                if record.key is not None and deletes and count.start <= _offset(record) < count.end:
                    total[sum(end <= _offset(record) for end in count.step_ends)] += 1
        return {partition: tuple(total) for partition, total in totals.items()}

    def _compare(self, number: int, proof: Proof, segments: Sequence[InspectedSegment]) -> Iterator[RecordFinding]:
        before: ByOffset = {}
        after: ByOffset = {}
        for inspected in segments:
            for part in (m for m in inspected.memberships if m.proof == number):
                for record in self._records(inspected.segment):
                    if part.before and _offset(record) >= part.from_offset:
                        before.setdefault(_offset(record), []).append(record)
                    if part.after:
                        after.setdefault(_offset(record), []).append(record)
        judge = _Judge(proof, [records[0] for records in before.values()])
        for offset in sorted(before.keys() | after.keys()):
            kind = judge.verdict(offset, before.get(offset, []), after.get(offset, []))
            if kind is not None:
                yield RecordFinding(number, offset, kind)


class _Judge:
    """Judges single offsets of one proof."""

    def __init__(self, proof: Proof, before: Sequence[Record]) -> None:
        self._proof = proof
        rules = proof.rules
        if rules is not None:
            everlasting = replace(rules, tombstones_expire_below=0, values_expire_before_ms=None)
            self._winners = _offsets_left(before, everlasting)
            # The round that takes a chunk may keep what it held (C53).
            self._in_chunks = {r.chunk.key for r in before if r.chunk is not None and _offset(r) < rules.horizon}
            # What was appended while the round went on it could not ask; with and without it is right.
            asked = [r for r in before if _offset(r) < max(proof.asked_up_to, rules.horizon)]
            self._must = _offsets_left(asked, rules)
            self._may = self._must | _offsets_left(before, rules)

    def verdict(self, offset: int, before: Sequence[Record], after: Sequence[Record]) -> FindingKind | None:
        how, every = self._proof, (*before, *after)
        if offset >= how.cut_at or offset < how.visible_from:
            return None
        if any(record != every[0] for record in every):
            return FindingKind.RECORD_ALTERED
        if len(after) > 1:
            return FindingKind.RECORD_DUPLICATED
        if not before:
            return FindingKind.RECORD_UNKNOWN if how.known_from <= offset < how.known_up_to else None
        return self._verdict_by_rules(offset, before[0], there=bool(after))

    def _verdict_by_rules(self, offset: int, record: Record, *, there: bool) -> FindingKind | None:
        how = self._proof
        if how.rules is None or offset >= how.horizon:
            return self._gone(record) if how.tail_stays and not there else None
        if offset < how.rules.log_start:
            return None
        if offset in self._must and not there:
            return self._gone(record)
        return self._stayed(record) if offset not in self._may and there else None

    def _gone(self, record: Record) -> FindingKind:
        return FindingKind.TOMBSTONE_REMOVED_EARLY if self._deletes(record) else FindingKind.RECORD_LOST

    def _stayed(self, record: Record) -> FindingKind | None:
        assert self._proof.rules is not None
        if record.key is None and not self._proof.rules.keep_keyless and not record.passed_through:
            return FindingKind.KEYLESS_KEPT
        if _offset(record) not in self._winners:
            return FindingKind.SUPERSEDED_KEPT
        if self._deletes(record) and record.key in self._in_chunks:
            return None
        return FindingKind.EXPIRED_TOMBSTONE_KEPT if self._deletes(record) else FindingKind.PAST_RETENTION_KEPT

    def _deletes(self, record: Record) -> bool:
        size = None if record.value is None else len(record.value)
        return record.key is not None and is_tombstone(size, empty_is_tombstone=self._proof.empty_is_tombstone)


def _offsets_left(records: Sequence[Record], rules: SurvivorRules) -> set[int]:
    return {_offset(record) for record in survivors(records, rules).records}


def file_findings(segment: Segment, records: Sequence[Record] | None) -> Iterator[Finding]:
    """What is wrong with one file of the memory store."""
    if records is None:
        yield Finding(segment.partition, FindingKind.FILE_MISSING, "the file is missing", path=segment.path)
        return
    if len(records) != segment.records:
        yield Finding(segment.partition, FindingKind.FILE_DAMAGED, "other records", path=segment.path)
        return
    if any(_offset(earlier) >= _offset(later) for earlier, later in pairwise(records)):
        yield Finding(segment.partition, FindingKind.OUT_OF_ORDER, "out of order", path=segment.path)
    actual = segment_of(segment.path, records)
    for fact in fields(Segment):
        if getattr(actual, fact.name) != getattr(segment, fact.name):
            yield Finding(segment.partition, FindingKind.WRONG_METADATA, fact.name, path=segment.path)


def _offset(record: Record) -> int:
    assert record.offset is not None  # every stored record has one
    return record.offset
