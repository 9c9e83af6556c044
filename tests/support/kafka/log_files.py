"""Log directories made of what brokers had recorded, and rounds over them without Spark."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass.key_blocks import Spool, SpooledKeys
from lithify.columnar.keypass.ranks import RANKED_KEYS
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.kafka_log.batches.codecs import NAMES, NO_CODEC, compressed
from lithify.kafka_log.batches.decoding import EndKind, KafkaRecord, header_of, transaction_end_of
from lithify.kafka_log.batches.frames import frames_of
from lithify.kafka_log.batches.header import DELETE_HORIZON, HEADER_BYTES, MAGIC, NONE, BatchHeader, attributes_of
from lithify.kafka_log.batches.legacy import LegacyRecord
from lithify.kafka_log.cleaning.segment_keys import KeysOfFile, ordinal_starts
from lithify.kafka_log.committed import Committed
from lithify.kafka_log.directories.checkpoints import META_PROPERTIES
from lithify.kafka_log.directories.folders import CLEAN_SHUTDOWN
from lithify.kafka_log.segment_scan import scanned
from lithify.kafka_log.transactions import transactions_of
from support.kafka.metadata import a_setting, a_topic, write_log

T = TypeVar("T")
R = TypeVar("R")
_FIRST_BYTES = 7
"""Of a record without key, value and headers, at the base of its batch."""
CODECS = {name: number for number, name in NAMES.items()}


@dataclass(frozen=True, slots=True)
class TasksHere:
    """Does in this process what tasks of Spark do; keys are spooled to `scratch`, and found by hash range."""

    scratch: Path
    slots: int = 2
    ranges: int = 2

    def run(self, function: Callable[[T], R], tasks: Sequence[T], *, once: bool = False) -> list[R]:
        return [function(task) for task in tasks]

    def dead(self, files: Sequence[KeysOfFile]) -> Mapping[int, DeadPositions]:
        finder, tally = WinnerFinder(2**24, "seed"), Tally()
        number = len(list(self.scratch.iterdir()))
        spools = [Spool(self.scratch / f"{number}-{index}") for index in range(self.ranges)]
        for file in files:
            for index, block in finder.blocks(file.batches(tally), self.ranges):
                spools[index].add(block, file.portion)
        starts, total = ordinal_starts(len(files)), Tally()
        dead = {number: file.none_found() for number, file in enumerate(files)}
        for index, spool in enumerate(spools):
            opened = partial(_opened, spool, starts)
            found, records = finder.find(opened, HashRange(index, self.ranges))
            total.add(found)
            for segment, part in records.by_segment().items():
                dead[segment] = dead[segment].with_part(part)
        assert total.compared == tally.dirty_keyed
        return dead


def _opened(spool: Spool, starts: Any, _: HashRange) -> SpooledKeys:
    return SpooledKeys(spool, RANKED_KEYS, starts)


def batches_in(path: Path) -> list[dict[str, Any]]:
    """The batches of a segment, as recorded cases have them."""
    with path.open("rb") as file:
        return [_described(frame, header_of(frame)) for frame in frames_of(file)]


def _described(frame: Any, header: BatchHeader) -> dict[str, Any]:
    found: dict[str, Any] = {
        "base": header.base_offset,
        "last": header.last_offset,
        "count": header.records,
        "bytes": len(frame.data),
        "codec": NAMES[header.codec],
        "base_ts": header.base_timestamp,
        "max_ts": header.max_timestamp,
    }
    if header.producer_id >= 0:
        found |= {"pid": header.producer_id, "epoch": header.producer_epoch, "seq": header.base_sequence}
    if header.is_transactional:
        found["txn"] = True
    if header.is_control:
        ending = transaction_end_of(frame, header)
        found |= {"control": True} | ({} if ending is None else {"marker": ending.kind.name.lower()})
    if header.delete_horizon_ms is not None:
        found["delete_horizon_ms"] = header.delete_horizon_ms
    return found


def committed_in(folder: Path) -> dict[int, dict[str, Any]]:
    """By offset, the records that a reader of committed records gets from the segments in a folder."""
    paths = sorted(folder.glob("*.log"))
    scans = []
    for path in paths:
        with path.open("rb") as file:
            scans.append(scanned(file))
    assert not any(scan.broken or scan.damaged for scan in scans)
    transactions = transactions_of(scan.transactions for scan in scans)
    reader = Committed(0, transactions.stable_end(2**62), transactions.aborted)
    found = {}
    for path in paths:
        with path.open("rb") as file:
            found |= {row["offset"]: row for part in reader.columns(file) for row in part.to_pylist()}
    return found


def latest_in(folder: Path) -> dict[bytes, dict[str, Any]]:
    """By key, the last of them, but for deletes."""
    latest = {row["key"]: row for row in committed_in(folder).values() if row["key"] is not None}
    return {key: row for key, row in latest.items() if row["value"] is not None}


def check_indexes(folder: Path) -> None:
    """Those of each segment, if a broker would not make them anew, point to its batches."""
    for path in folder.glob("*.index"):
        batches = {}
        if not path.with_suffix(".log").exists():
            continue  # a broker deletes it
        with path.with_suffix(".log").open("rb") as file:
            batches = {frame.position: header_of(frame) for frame in frames_of(file)}
        for relative, position in struct.iter_unpack(">ii", path.read_bytes()):
            assert batches[position].last_offset == int(path.stem) + relative
        newest = [header.max_timestamp for header in batches.values()]
        times = [*struct.iter_unpack(">qi", path.with_suffix(".timeindex").read_bytes())]
        assert times == sorted(times)
        assert not newest or times[-1][0] == max(newest)


def started(folder: Path) -> None:
    """What a broker that starts does with what a cleaner has left, step by step (`LogLoader`)."""
    for path in folder.glob("*.deleted"):
        path.unlink()
    begun = min((int(path.name[:20]) for path in folder.glob("*.cleaned")), default=2**63)
    for path in folder.glob("*.swap"):
        if int(path.name[:20]) >= begun:
            path.unlink()
    for path in folder.glob("*.cleaned"):
        path.unlink()
    low, high = 2**63, -1
    for path in folder.glob("*.log.swap"):
        with path.open("rb") as file:
            ends = [header_of(frame).last_offset + 1 for frame in frames_of(file)]
        low, high = min(low, int(path.name[:20])), max(high, *ends, int(path.name[:20]))
    for path in folder.iterdir():
        if path.suffix != ".swap" and path.name[:20].isdigit() and low <= int(path.name[:20]) < high:
            path.unlink()
    for path in folder.glob("*.swap"):
        path.rename(path.with_suffix(""))
    for path in folder.glob("*.*index"):
        if not path.with_suffix(".log").exists():
            path.unlink()


def write_stage(root: Path, topic: str, case: Mapping[str, Any], stage: Mapping[str, Any]) -> Path:
    """A directory of a broker that was stopped in order, with the only log that a case has; returns its folder.

    Its metadata log states that the topic is compacted.
    """
    folder = root / f"{topic}-0"
    folder.mkdir(parents=True)
    (root / CLEAN_SHUTDOWN).touch()
    (root / META_PROPERTIES).write_text("version=1\ncluster.id=c\nnode.id=1\n")
    write_log(root, a_topic(topic), a_setting(topic, "cleanup.policy", "compact"))
    known, there = {r["offset"]: r for r in case["records"]}, set(stage["read_uncommitted"])
    for segment in stage["segments"]:
        data = b"".join(_batch(one, known, there) for one in segment["batches"])
        (folder / f"{segment['base']:020}.log").write_bytes(data)
    checkpoints = {"replication": stage["high_watermark"], "recovery-point": stage["high_watermark"]}
    if stage["cleaner_checkpoint"] is not None:
        checkpoints["cleaner"] = stage["cleaner_checkpoint"]
    for name, offset in checkpoints.items():
        (root / f"{name}-offset-checkpoint").write_text(f"0\n1\n{topic} 0 {offset}\n")
    return folder


def _batch(one: Mapping[str, Any], known: Mapping[int, Any], there: set[int]) -> bytes:
    if "control" in one:
        kind = EndKind[one["marker"].upper()] if "marker" in one else None
        key = b"" if kind is None else struct.pack(">hh", 0, kind)
        records = [] if kind is None else [LegacyRecord(one["base"], one["max_ts"], 0, key, struct.pack(">hi", 0, 0))]
    else:
        offsets = [offset for offset in range(one["base"], one["last"] + 1) if offset in there]
        records = [_record(known[offset]) for offset in offsets]
    assert len(records) == one["count"], one
    header = BatchHeader(
        base_offset=one["base"],
        last_offset_delta=one["last"] - one["base"],
        base_timestamp=one["base_ts"],
        max_timestamp=one["max_ts"],
        records=len(records),
        attributes=attributes_of(CODECS[one["codec"]], is_transactional="txn" in one, is_control="control" in one),
        producer_id=one.get("pid", -1),
        producer_epoch=one.get("epoch", -1),
        base_sequence=one.get("seq", -1),
    )
    if "delete_horizon_ms" in one:
        header = replace(header, attributes=header.attributes | DELETE_HORIZON)
    body = _record_bytes(records, header.base_offset, header.base_timestamp) if records else b""
    return header.with_records(compressed(header.codec, body) if records else body)


def _record(one: Mapping[str, Any]) -> LegacyRecord:
    key, value = (None if one.get(name) is None else base64.b64decode(one[name]) for name in ("key_b64", "value_b64"))
    if "value_len" in one:
        value = b"\xff" * one["value_len"]  # of long values there is only a checksum
    headers = [(name, None if v is None else base64.b64decode(v)) for name, v in map(_header, one["headers"])]
    return LegacyRecord(one["offset"], one["timestamp"], 0, key, value, headers)


def _header(one: Any) -> tuple[str, str | None]:
    return (one["key"], one.get("value_b64")) if isinstance(one, dict) else tuple(one)


def _record_bytes(records: Iterable[KafkaRecord], base_offset: int, base_timestamp: int) -> bytes:
    """Records that are not compressed, as a batch with these bases has them."""
    builder: Any = DefaultRecordBatchBuilder(MAGIC, NO_CODEC, 0, NONE, NONE, NONE, 2**31 - 1)
    builder.append(0, 1, None, None, [])  # the library takes the time of the first one for the base
    for record in records:
        after = record.timestamp - base_timestamp
        builder.append(record.offset - base_offset, 1 + after, record.key, record.value, [*record.headers])
    return bytes(builder.build())[HEADER_BYTES + _FIRST_BYTES :]
