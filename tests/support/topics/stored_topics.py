"""A topic as nothing but segment files and states: rounds on an engine, each held to the oracle.

append ─► segments on disk ─► plan ─► engine ─► findings, groups ─► audit ─► new states
                 │                       ║ must equal ║
                 └─► records ─────────► the oracle's survivors, every field, in order
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.convert import envelope_columns, to_records, to_table
from lithify.columnar.segment.schema import LEDGER_ID, SEGMENT_SCHEMA, VALUE, VALUE_SIZE, schema_of
from lithify.columnar.segment.segment_reader import read_segment
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.errors import LithifyError
from lithify.model.log_arithmetic import measured
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LastRecord, LogState
from lithify.model.topic.state import TopicState
from lithify.ports.engine import PlannedLog, Progress, RewriteEngine, Rewritten, RunLimits
from lithify.rules.compaction.audit import audit
from lithify.rules.compaction.decisions import Decision, work_of
from lithify.rules.compaction.outcome import LogFindings, LogOutcome, applied, decisions_of
from lithify.rules.compaction.planner import LogPlan, plan_log
from lithify.rules.compaction.round_commit import After, RoundTimes, state_after
from lithify.rules.compaction.survivors import survivors
from lithify.testing.oracle_engine import findings_of, rules_of
from support.builders import with_id

ACCESS = FileAccess()
NO_LIMITS = RunLimits()


def silent(_phase: str, _done: int, _total: int) -> None:
    """Progress that is not shown."""


@dataclass(slots=True)
class StoredTopic:
    """A topic under `folder`. `logs` and `segments` go by partition."""

    folder: Path
    settings: TopicSettings = TopicSettings()
    logs: list[LogState] = field(default_factory=list)
    segments: list[tuple[Segment, ...]] = field(default_factory=list)
    runs: int = 0

    @property
    def state(self) -> TopicState:
        name = TopicName("default", "t")
        return TopicState(name, "t", "t", self.runs, str(self.folder), self.settings, tuple(self.logs), 0)

    def append(self, partition: int, records: Sequence[Record]) -> None:
        """One segment more. Records without an offset go on from the log end."""
        while len(self.logs) <= partition:
            self.logs.append(LogState(len(self.logs)))
            self.segments.append(())
        offset = self.logs[partition].log_end_offset
        numbered = []
        for record in records:
            offset = offset if record.offset is None else record.offset
            stored = record._replace(offset=offset, partition=partition, timestamp=record.timestamp or 0)
            numbered.append(with_id(stored) if self.settings.message_ids == "pulsar" else stored)
            offset += 1
        if numbered:
            self.runs += 1
            schema = schema_of(self.settings)
            written = write_segments(
                self.folder, f"append{self.runs}", numbered, schema=schema, indexes_keys=self.settings.indexes_keys
            )
            self.segments[partition] += written
            moved = replace(self.logs[partition], log_end_offset=offset)
            self.logs[partition] = measured(moved, self.segments[partition])

    def move_start(self, partition: int, offset: int) -> None:
        """S goes up, and D with it where it is overtaken (C26)."""
        log = self.logs[partition]
        self.logs[partition] = replace(
            log,
            log_start_offset=max(log.log_start_offset, offset),
            first_dirty_offset=max(log.first_dirty_offset, offset),
        )

    def records(self, partition: int) -> tuple[Record, ...]:
        """Everything that is stored, in the order of the files."""
        return tuple(record for segment in self.segments[partition] for record in records_in(segment))

    def plans(self, now_ms: int = 0) -> list[LogPlan]:
        return [plan_log(log, self.segments[p], self.settings, now_ms) for p, log in enumerate(self.logs)]

    def round(
        self,
        engine: RewriteEngine,
        *,
        now_ms: int = 0,
        limits: RunLimits = NO_LIMITS,
        progress: Progress = silent,
    ) -> dict[int, LogOutcome]:
        """A round of every log. Raises the error of a log; fails where the oracle says otherwise."""
        self.runs += 1
        plans = self.plans(now_ms)
        logs = [PlannedLog(self.state, plan) for plan in plans]
        with engine.open_round(logs, limits, f"run{self.runs}", progress) as round_:
            found = {log.partition: findings for log, findings in round_.find_survivors().items()}
            decisions = {}
            for plan in plans:
                findings = found[plan.partition]
                if isinstance(findings, LithifyError):
                    raise findings
                self._compare_findings(plan, findings)
                decisions[plan.partition] = decisions_of(plan, findings)
            rewrites = {log.id: mine for log in logs if (mine := work_of(decisions[log.id.partition]))}
            written = {log.partition: results for log, results in round_.rewrite(rewrites).items()}
        outcomes = {}
        for plan in plans:
            findings = found[plan.partition]
            assert isinstance(findings, LogFindings)
            results = []
            for result in written.get(plan.partition, ()):
                if isinstance(result, LithifyError):
                    raise result
                results.append(result)
            outcomes[plan.partition] = self._commit(plan, findings, decisions[plan.partition], results, now_ms)
        return outcomes

    def _compare_findings(self, plan: LogPlan, findings: LogFindings) -> None:
        below = {s.path: tuple(records_in(s)) for s in plan.sources}
        above_horizon = [r for s in plan.above_horizon for r in records_in(s) if (r.offset or 0) >= plan.horizon.offset]
        oracle = survivors([*(r for records in below.values() for r in records), *above_horizon], rules_of(plan))
        expected = findings_of(plan, below, oracle)
        assert replace(findings, bytes_read=0) == replace(expected, bytes_read=0)

    def _commit(
        self,
        plan: LogPlan,
        findings: LogFindings,
        decisions: Sequence[Decision],
        results: Sequence[Rewritten],
        now_ms: int,
    ) -> LogOutcome:
        partition = plan.partition
        gone = {s.path for s in plan.gone + plan.sources}
        above = tuple(s for s in self.segments[partition] if s.path not in gone)
        above_horizon = [r for s in plan.above_horizon for r in records_in(s) if (r.offset or 0) >= plan.horizon.offset]
        sources = [record for segment in plan.sources for record in records_in(segment)]
        expected = survivors([*sources, *above_horizon], rules_of(plan)).records + tuple(
            r for s in above for r in records_in(s)
        )
        new = dict(zip(work_of(decisions), (result.segments for result in results), strict=True))
        read = findings.bytes_read + sum(result.bytes_read for result in results)
        outcome = LogOutcome(plan, findings, applied(decisions, new), read)
        audit(f"t-{partition}", outcome)
        self.segments[partition] = outcome.result + above
        after = self.records(partition)
        assert after == expected
        last = LastRecord(after[-1].offset or 0, after[-1].timestamp or 0) if after else None
        self.logs[partition] = state_after(
            outcome,
            self.logs[partition],
            After(self.segments[partition], last),
            self.settings,
            run_id=f"run{self.runs}",
            times=RoundTimes(now_ms, now_ms),
        )
        return outcome


def write_segments(
    folder: Path,
    run_id: str,
    records: Sequence[Record],
    *,
    segment_bytes: int = 2**40,
    schema: pa.Schema = SEGMENT_SCHEMA,
    indexes_keys: bool = False,
) -> tuple[Segment, ...]:
    """Records of one partition as segments under `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = SegmentSpec(str(folder), run_id, records[0].partition or 0, segment_bytes, "zstd", schema, indexes_keys)
    writer = SegmentWriter(ACCESS, spec, attempt="0")
    writer.write(segment_table(records, schema))
    return writer.close()


def segment_table(records: Sequence[Record], schema: pa.Schema = SEGMENT_SCHEMA) -> pa.Table:
    """Records with the columns of a segment."""
    table = to_table(records)
    for name, column in envelope_columns(records).items() if LEDGER_ID in schema.names else ():
        table = table.append_column(name, column)
    table = table.append_column(VALUE_SIZE, pc.binary_length(table.column(VALUE)).cast(pa.int32()))
    return table.select(schema.names).cast(schema)


def records_in(segment: Segment) -> list[Record]:
    """All records of a segment."""
    return [record for table in read_segment(ACCESS, segment) for record in to_records(table)]


def files_of(topic: StoredTopic) -> Mapping[str, bytes]:
    """The bytes of every segment that the topic names."""
    return {s.path: Path(s.path).read_bytes() for segments in topic.segments for s in segments}
