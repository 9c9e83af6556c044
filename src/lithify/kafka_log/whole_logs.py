"""Whether logs are whole from where a copy continues: what they lack is refused, or told where that was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lithify.errors import DamagedError
from lithify.kafka_log.log_notes import NAMED_AT_MOST, left_out
from lithify.kafka_log.scanned_log import ScannedLog
from lithify.kafka_log.segment_scan import DAMAGED_NAMED_AT_MOST
from lithify.model.settings.units import plural


def lacking(topic: str, logs: Mapping[int, ScannedLog], starts: Mapping[int, int], *, skips: bool) -> Iterator[str]:
    """For people, what is left out of [starts, …). Raises `DamagedError` for it, if it is not to be skipped."""
    if damage := [one for p, log in logs.items() for one in log.damage_from(starts[p])]:
        named = "; ".join(map(str, damage[:NAMED_AT_MOST]))
        named += f"; and {len(damage) - NAMED_AT_MOST} more" if len(damage) > NAMED_AT_MOST else ""
        if not skips:
            raise DamagedError(
                f"{topic}: {plural(len(damage), 'place')} in its segments cannot be read: {named}",
                hint="give the directory of another replica, or leave out what is damaged with --skip-damaged",
            )
        _check_all_named(topic, logs, named)
        yield left_out(topic, named, logs.values())
    for partition, log in logs.items():
        for what in _lost_ends(log):
            if not skips:
                raise DamagedError(
                    f"{topic}-{partition}: {what}",
                    hint="give the directory of another replica, or what is left with --skip-damaged. If the "
                    "checkpoint is wrong, give a copy of the directory without that file",
                )
            yield f"{topic}-{partition}: {what}"


def _check_all_named(topic: str, logs: Mapping[int, ScannedLog], named: str) -> None:
    segments = (segment for log in logs.values() for segment in log.segments)
    if any(segment.scan.damaged_frames > DAMAGED_NAMED_AT_MOST for segment in segments):
        raise DamagedError(
            f"{topic}: a segment has more than {DAMAGED_NAMED_AT_MOST} damaged batches: {named}",
            hint="leave its file out of the directory, so that its whole range is left out",
        )


def _lost_ends(log: ScannedLog) -> Iterator[str]:
    """What only checkpoints show. A broker says nothing of it, and goes on without the records."""
    end = log.written_end
    if end < log.start_offset:
        why = f"log-start-offset-checkpoint has {log.start_offset}, but its last record is before {end}"
        yield f"{why}: a broker that starts would delete all of them"
    elif log.replicated is not None and end < log.replicated[0]:
        noted, directory = log.replicated
        why = f"replication-offset-checkpoint in {directory} has {noted}, but its files end at {end}"
        yield f"{why}: records that were on all replicas are lost"
