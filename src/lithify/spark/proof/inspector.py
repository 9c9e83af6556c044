"""`verify` on Spark: compares the records of two or more versions (C1, C3, C4, C5).

    files ─► mapInArrow: (segment, offset, key, digest, ...) ─► one row per segment and proof ─► `verdicts`
                   └─► findings about the file, and its number of tombstones, or the error that reading it ended with

Every file is read once, also for segments that differ in their masks. Window functions of Spark over exact keys find
the winner of each key, independently of the code that rounds use, so that the two do not share a mistake. Values do not
leave the tasks.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from lithify.columnar.segment.inspect import DIGESTS, Piece, TombstonesOf, Wanted, inspect_file
from lithify.errors import LithifyError
from lithify.model.finding import Finding, FindingKind
from lithify.model.segment import sizes_of
from lithify.ports.engine import Progress, RunLimits
from lithify.ports.inspector import InspectionResult, RecordFinding
from lithify.rules.proof.inspection import InspectedSegment
from lithify.rules.proof.transition import Proof
from lithify.spark.proof.verdicts import header_names, rules_frame, verdicts
from lithify.spark.session.job_progress import Watch, watched
from lithify.spark.tasks import TaskPace, Workers, job_errors

MOST_TASKS = 256
"""Most tasks that files are distributed over."""

TASK_RECORDS = 500_000
"""Approximate number of records per task that compares them."""

_ROWS = pa.schema([pa.field("segment", pa.int32()), *DIGESTS, pa.field("about", pa.string())])
_MEMBERS_DDL = "segment int, proof int, before boolean, after boolean, from_offset long"
_NO_PROOF = -1
_ERROR = "error"
_BEFORE_FINDINGS = -1
"""The offset of rows with errors, so that the limit of what is collected cuts off none."""


class SparkInspector:
    """Compares versions on a Spark session; its tasks together keep to the read rate of `limits` (C40)."""

    def __init__(self, session: Callable[[], SparkSession], workers: Workers, limits: RunLimits) -> None:
        self._session = session
        self._workers = workers
        self._limits = limits

    def inspect(
        self,
        segments: Sequence[InspectedSegment],
        proofs: Sequence[Proof],
        most: int,
        progress: Progress,
    ) -> InspectionResult:
        """Reads every segment once and judges every record; see `ports.inspector.Inspector`.

        Raises an error that a task returned, such as `WarehouseError`, or `EngineError` if the job fails.
        """
        if not segments:
            return InspectionResult((), (), {})
        session = self._session()
        limited = self._limits.read_rate_bytes is not None
        files = _by_file(segments)
        tasks = min(len(files), MOST_TASKS, *([self._workers.slots] if limited else []))
        pace = self._workers.task_pace(self._limits, tasks)
        group, comparing = self._workers.new_id(), _tasks(segments)
        size_bytes = sum(sizes_of(one.segment for one in segments).values())
        watch = Watch(f"{group}-verify", "verify", (tasks, comparing), size_bytes, progress)
        with job_errors():
            rows = _rows(session, pace, files, header_names(proofs), tasks)
            findings = verdicts(
                _compared(session, rows, segments),
                rules_frame(session, proofs),
                proofs,
                partitions=comparing,
                secret=self._workers.new_id(),
            )
            # Findings about files come first; the limit leaves room for both kinds.
            about_file = F.col("proof") == _NO_PROOF
            ordered = findings.orderBy(~about_file, "proof", "offset").limit(2 * len(segments) + 2 * (most + 1))
            with watched(session, watch):
                listed = ordered.collect()
        return _result([(row.proof, row.offset, row.finding) for row in listed], most)


def _tasks(segments: Sequence[InspectedSegment]) -> int:
    compared = sum(s.segment.records * len(s.memberships) for s in segments)
    return 1 + compared // TASK_RECORDS


Numbered = tuple[int, InspectedSegment]
"""A segment, and its number among all."""


def _by_file(segments: Sequence[InspectedSegment]) -> list[list[Numbered]]:
    """The segments of each data file together: they differ in their masks."""
    files: dict[str, list[Numbered]] = {}
    for number, one in enumerate(segments):
        files.setdefault(one.segment.path, []).append((number, one))
    return list(files.values())


def _rows(
    session: SparkSession, pace: TaskPace, files: Sequence[Sequence[Numbered]], headers: Sequence[str], tasks: int
) -> DataFrame:
    """One row per record of each compared segment, and one per finding or tombstone count of a file."""
    specs = pa.table(
        {
            "task": pa.array([number % tasks for number in range(len(files))], pa.int32()),
            "spec": pa.array([pickle.dumps(file) for file in files], pa.binary()),
        }
    )

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        acquire = pace.throttles().read
        for batch in batches:
            for spec in batch.column("spec").to_pylist():
                numbers, some = zip(*pickle.loads(spec), strict=True)
                wanted = [Wanted(one.segment, headers if one.memberships else None, one.count) for one in some]
                try:
                    for index, piece in inspect_file(pace.access, wanted, acquire):
                        yield from _as_rows(numbers[index], piece)
                except LithifyError as error:
                    yield _about(numbers[0], _BEFORE_FINDINGS, {_ERROR: base64.b64encode(pickle.dumps(error)).decode()})

    frame = session.createDataFrame(specs).repartitionById(tasks, F.col("task")).select("spec")
    return frame.mapInArrow(read, from_arrow_schema(_ROWS))


def _as_rows(number: int, piece: Piece) -> Iterator[pa.RecordBatch]:
    if not isinstance(piece, pa.Table):
        yield _about(number, number, asdict(piece))
        return
    for batch in piece.to_batches():
        count = batch.num_rows
        columns = [pa.repeat(pa.scalar(number, pa.int32()), count), *batch.columns, pa.nulls(count, pa.string())]
        yield pa.RecordBatch.from_arrays(columns, schema=_ROWS)


def _about(number: int, offset: int, about: dict[str, Any]) -> pa.RecordBatch:
    row = {"segment": number, "offset": offset, "about": json.dumps(about)}
    return pa.RecordBatch.from_pylist([row], schema=_ROWS)


def _compared(session: SparkSession, rows: DataFrame, segments: Sequence[InspectedSegment]) -> DataFrame:
    """One row per record and proof that it belongs to; rows about files get the proof `_NO_PROOF`."""
    members = [
        (number, part.proof, part.before, part.after, part.from_offset)
        for number, inspected in enumerate(segments)
        for part in inspected.memberships
    ]
    parts = F.broadcast(session.createDataFrame(members, _MEMBERS_DDL))
    before = F.col("before") & (F.col("offset") >= F.col("from_offset"))
    records = rows.join(parts, (rows["segment"] == parts["segment"]) & rows["about"].isNull(), "left").select(
        F.coalesce("proof", F.lit(_NO_PROOF)).alias("proof"),
        *(F.col(name) for name in DIGESTS.names),
        F.coalesce(before, F.lit(False)).alias("before"),
        F.coalesce("after", F.lit(False)).alias("after"),
        "about",
    )
    return records.filter(F.col("before") | F.col("after") | F.col("about").isNotNull())


def _result(rows: Sequence[tuple[int, int, str]], most: int) -> InspectionResult:
    files: list[Finding] = []
    tombstones: dict[int, tuple[int, ...]] = {}
    records: list[RecordFinding] = []
    for proof, offset, text in rows:
        if proof != _NO_PROOF:
            records.append(RecordFinding(proof, offset, FindingKind(text)))
            continue
        about = json.loads(text)
        if _ERROR in about:
            raise pickle.loads(base64.b64decode(about[_ERROR]))
        if "kind" in about:
            files.append(Finding(**{**about, "kind": FindingKind(about["kind"])}))
            continue
        counted = TombstonesOf(**about)
        known = tombstones.get(counted.partition, (0,) * len(counted.counts))
        tombstones[counted.partition] = tuple(a + b for a, b in zip(known, counted.counts, strict=True))
    return InspectionResult(tuple(files), tuple(records[: most + 1]), tombstones)
