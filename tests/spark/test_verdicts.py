"""Spark's verdicts on records are those of plain Python, whatever was done to them.

C4, C10, C11, C16, C20, C24, C53.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.schema import ENVELOPE_SCHEMA, SEGMENT_SCHEMA
from lithify.model.finding import FindingKind, TombstoneCount
from lithify.model.message import Envelope, MessageId
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.table import ByColumn, ByHeader
from lithify.ports.engine import RunLimits
from lithify.ports.inspector import RecordFinding
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.compaction.survivors import survivors
from lithify.rules.proof.inspection import inspected
from lithify.rules.proof.transition import Proof, Source
from lithify.spark.proof.inspector import SparkInspector
from lithify.spark.tasks import Pace, Workers
from lithify.testing.memory_files import MemoryFiles
from lithify.testing.oracle_inspector import OracleInspector
from support.builders import a_log, with_id
from support.chunks import chunk_metadata
from support.topics.stored_topics import silent, write_segments

pytestmark = pytest.mark.spark

WORKERS = Workers(FileAccess(), 2, Pace(time.monotonic, time.sleep), lambda: "secret")
PROOFS = 80
TASKS = 8
"""Far fewer than there are files, so that a task has many of them."""


def some_record(random: Random, offset: int, partition: int) -> Record:
    version = random.choice([None, None, 0, 1, -1, -(2**63), 2**63 - 1])
    headers: tuple[tuple[str, bytes | None], ...] = (("w", None),)
    headers += () if version is None else (("v", version.to_bytes(8, "big", signed=True)),)
    headers += random.choice([(), (), (("v", b"short"),), (("v", None),)])
    return Record(
        key=random.choice([b"a", b"b", b"c", b"", None]),
        value=random.choice([b"1", b"22", b"", None, None]),
        timestamp=random.choice([100, 101, 102, 103]),
        headers=headers,
        partition=partition,
        offset=offset,
    )


def as_of_pulsar(random: Random, record: Record) -> Record:
    """The record with a message id; without a key it may be a chunk, which has one in its metadata."""
    if record.key is None and random.random() < 0.4:
        metadata = chunk_metadata(random.choice([b"a", b"a", b"b", b"", None]))
        record = record._replace(envelope=Envelope(MessageId(0, 0), metadata=metadata, passed_through=True))
    return with_id(record)


def some_rules(random: Random, end: int) -> SurvivorRules | None:
    start, horizon = sorted((random.choice([0, 0, random.randint(0, end)]), random.randint(0, end)))
    if random.random() < 0.15:
        return None
    return SurvivorRules(
        log_start=start,
        horizon=horizon,
        keep_keyless=random.random() < 0.5,
        empty_is_tombstone=random.random() < 0.5,
        tombstones_expire_below=random.choice([0, horizon, random.randint(0, horizon)]),
        order=random.choice([None, ByColumn("timestamp"), ByHeader("v")]),
        values_expire_before_ms=random.choice([None, 101, 103]),
    )


def some_damage(random: Random, records: list[Record], before: list[Record]) -> list[Record]:
    """A record dropped, altered (its value or its key), or put back; now and then nothing."""
    damaged = {r.offset: r for r in records}
    for _ in range(random.choice([0, 1, 1, 3])):
        victim = random.choice(before)
        match random.choice(["drop", "value", "key", "return"]):
            case "drop":
                damaged.pop(victim.offset, None)
            case "value" if victim.offset in damaged:
                damaged[victim.offset] = victim._replace(value=b"forged")
            case "key" if victim.offset in damaged and not victim.passed_through:
                damaged[victim.offset] = victim._replace(key=b"another")
            case _:
                damaged[victim.offset] = victim
    return [damaged[offset] for offset in sorted(damaged, key=lambda offset: offset or 0)]


class Case:
    """Proofs of random logs, their files on disk and in memory."""

    def __init__(self, folder: Path) -> None:
        self.files = MemoryFiles()
        self._folder = folder
        self._written = 0

    def written(self, records: list[Record]) -> tuple[Segment, ...]:
        """One or two segments of these records."""
        self._written += 1
        if not records:
            return ()
        schema = SEGMENT_SCHEMA if records[0].envelope is None else ENVELOPE_SCHEMA
        segments = write_segments(self._folder, f"run{self._written}", records, schema=schema)
        for segment in segments:
            inside = range(segment.base_offset, segment.end_offset)
            self.files.data[segment.path] = tuple(r for r in records if r.offset in inside)
        return segments

    def proof(self, random: Random, partition: int) -> Proof:
        end = random.randint(1, 25)
        offsets = sorted(random.sample(range(end), random.randint(1, end)))
        before = [some_record(random, offset, partition) for offset in offsets]
        if of_pulsar := random.random() < 0.5:
            before = [as_of_pulsar(random, record) for record in before]
        rules = some_rules(random, end)
        left = before if rules is None else [*survivors(before, rules).records]
        left += [] if rules is None else [r for r in before if (r.offset or 0) >= rules.horizon]
        after = some_damage(random, left, before)
        appended = [some_record(random, end, partition)]
        appended = [with_id(record) for record in appended] if of_pulsar else appended
        same = [r for r in after if r.key != b"another"]  # one with another key, twice, is no duplicate of any
        duplicate = [random.choice(same)] if same and random.random() < 0.2 else []
        files = (*self.written(after), *self.written(duplicate), *self.written(appended))
        cut = random.choice([0, len(before)])
        sources = (*self.written(before[:cut]), *self.written(before[cut:]))
        return Proof(
            partition=partition,
            of_view=False,
            versions=(1, 2),
            before=tuple(Source(s, random.choice([0, 0, 0, 5])) for s in sources),
            after=files,
            empty_is_tombstone=random.random() < 0.5 if rules is None else rules.empty_is_tombstone,
            visible_from=random.choice([0, 0, 0, 5]),
            known_from=random.choice([0, 5]) if rules is None else 0,
            known_up_to=end,
            rules=rules,
            tail_stays=random.random() < 0.8,
            asked_up_to=random.choice([end, end, random.randint(0, end)]),
            **({"cut_at": random.randint(0, end)} if random.random() < 0.1 else {}),
        )


def test_spark_says_of_every_record_what_the_oracle_says(
    tmp_path: Path, session: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lithify.spark.proof.inspector.MOST_TASKS", TASKS)
    random, case = Random(1), Case(tmp_path)
    whole = [case.proof(random, partition) for partition in range(PROOFS)]
    current = [segment for proof in whole for segment in proof.after]
    counts = {s.path: TombstoneCount(2, 20, (6, 11), random.random() < 0.5) for s in current}
    segments = inspected(whole, current, counts)
    told: list[tuple[str, int, int]] = []
    spark = SparkInspector(lambda: session, WORKERS, RunLimits()).inspect(  # type: ignore[arg-type,return-value]
        segments, whole, 10_000, lambda *step: told.append(step)
    )
    size_bytes = sum(one.segment.size_bytes for one in segments)
    assert (told[0], told[-1]) == (("verify", 0, size_bytes), ("verify", size_bytes, size_bytes))
    oracle = OracleInspector(case.files).inspect(segments, whole, 10_000, silent)
    assert spark.files == ()
    assert set(spark.tombstones.items()) == set(oracle.tombstones.items())
    assert named(spark.records) == named(oracle.records)
    assert {record.kind for record in oracle.records} == set(FindingKind) - FILE_KINDS


def test_a_chunk_holds_the_tombstones_of_its_key_alone(tmp_path: Path, session: object) -> None:
    """C53: unless it goes in the round; one that was kept for it is no finding even then."""
    lost, kept = FindingKind.TOMBSTONE_REMOVED_EARLY, FindingKind.EXPIRED_TOMBSTONE_KEPT
    drawn = [
        ("□a=x a=∅ b=∅", "□a=x@0 a=∅@1", 0, {}),
        ("□a=x a=∅ b=∅", "□a=x@0", 0, {1: lost}),
        ("□a=x a=∅ b=∅", "□a=x@0 a=∅@1 b=∅@2", 0, {2: kept}),
        ("a=∅ □a=x b=∅", "□a=x@1", 0, {0: lost}),
        ("□a=x a=∅ b=∅", "a=∅@1", 1, {}),
        ("□a=x a=∅ b=∅", "", 1, {}),
    ]
    case, whole, expected = Case(tmp_path), [], {}
    for number, (before, after, start, findings) in enumerate(drawn):
        rules = SurvivorRules(start, 3, False, False, 3)
        sources, left = (case.written([with_id(r) for r in a_log(text).records]) for text in (before, after))
        proof = Proof(0, False, (1, 2), tuple(map(Source, sources)), left, False, visible_from=start, rules=rules)
        whole.append(proof)
        expected |= {(number, offset): kind for offset, kind in findings.items()}
    segments = inspected(whole, [], {})
    spark = SparkInspector(lambda: session, WORKERS, RunLimits())  # type: ignore[arg-type,return-value]
    assert named(spark.inspect(segments, whole, 100, silent).records) == expected
    assert named(OracleInspector(case.files).inspect(segments, whole, 100, silent).records) == expected


def named(records: Sequence[RecordFinding]) -> dict[tuple[int, int], FindingKind]:
    """By proof and offset. One with another key is gone under the one, where it had to stay, and unknown
    under the other, which `verify` takes together."""
    times = Counter((record.proof, record.offset) for record in records)
    altered, other = FindingKind.RECORD_ALTERED, FindingKind.RECORD_UNKNOWN
    return {
        (r.proof, r.offset): altered if times[r.proof, r.offset] > 1 or r.kind is other else r.kind for r in records
    }


FILE_KINDS = {
    FindingKind.FILE_MISSING,
    FindingKind.FILE_DAMAGED,
    FindingKind.OUT_OF_ORDER,
    FindingKind.WRONG_METADATA,
    FindingKind.BELOW_START_KEPT,
    FindingKind.NOT_VERIFIED,
}
