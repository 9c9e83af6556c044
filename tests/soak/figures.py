"""The figures of a soak, as one JSON object and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from statistics import median
from typing import Any

from lithify.model.settings.units import format_bytes
from soak.checks import Left
from soak.events import Told
from soak.feeder import Counts
from soak.part import Part
from soak.programs import Life
from soak.troubles import Strike


@dataclass(frozen=True, slots=True)
class Memory:
    """What a cleaner had in memory `age_s` after its start. Bytes."""

    cleaner: str
    life: int
    age_s: float
    program_bytes: int
    all_bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything that is reported."""

    topics: int
    logs: int
    seed: int
    fed_s: float
    drained_s: float
    counts: Counts
    told: Told
    rounds_in_turn: int
    """Pairs of rounds of one log by two cleaners, one of them after the other."""
    strikes: Sequence[Strike]
    lives: Sequence[Life]
    memory: Sequence[Memory]
    never_named: Left
    stored_files: int
    stored_bytes: int
    records_compared: int
    verified: int
    parts: Sequence[Part]
    findings: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        told = {one.name: getattr(self.told, one.name) for one in fields(self.told)}
        return {
            "topics": self.topics,
            "logs": self.logs,
            "seed": self.seed,
            "fed_s": round(self.fed_s, 1),
            "drained_s": round(self.drained_s, 1),
            "records_fed": self.counts.records,
            "verbs": dict(self.counts.verbs),
            "refused": dict(self.counts.refused),
            "feeder_conflicts": dict(self.counts.conflicts),
            "settled": dict(self.counts.settled),
            "appends_lost": dict(self.counts.lost),
            "told": told,
            "rounds_in_turn": self.rounds_in_turn,
            "kills": sum(strike.kind == "kill" for strike in self.strikes),
            "strikes": [_strike(strike) for strike in self.strikes],
            "stops": [
                {"cleaner": life.name, "exit_code": life.exit_code, "seconds": round(life.stopped_s, 2)}
                for life in self.lives
                if life.stopped_s is not None
            ],
            "memory": self._memory(),
            "lost_work": asdict(self.never_named),
            "stored_files": self.stored_files,
            "stored_bytes": self.stored_bytes,
            "records_compared": self.records_compared,
            "topics_verified": self.verified,
            **{part.name: part.to_json() for part in self.parts},
            "findings": list(self.findings),
        }

    def _memory(self) -> list[dict[str, Any]]:
        """Of every life that lasted, in its first, middle and last moments."""
        found = []
        for life in self.lives:
            mine = [m for m in self.memory if (m.cleaner, m.life) == (life.name, life.number)]
            if len(mine) >= 3:
                third = max(1, len(mine) // 6)
                parts = {"start": mine[:third], "middle": mine[len(mine) // 2 :][:third], "end": mine[-third:]}
                found.append(
                    {
                        "cleaner": f"{life.name}.{life.number}",
                        "age_s": round(mine[-1].age_s),
                        "most_bytes": max(m.all_bytes for m in mine),
                        **{f"program_{name}_bytes": _middle(m.program_bytes for m in ms) for name, ms in parts.items()},
                        **{f"all_{name}_bytes": _middle(m.all_bytes for m in ms) for name, ms in parts.items()},
                    }
                )
        return found

    def table(self) -> str:
        """For people."""
        told, counts = self.told, self.counts
        taken = [s for strike in self.strikes for s in strike.taken_over_s.values()]
        held = sum(len(strike.held) for strike in self.strikes)
        kinds = told.kinds
        rows: list[tuple[str, object]] = [
            ("topics, logs", f"{self.topics}, {self.logs}"),
            ("fed, then drained", f"{self.fed_s:.0f} s, {self.drained_s:.0f} s"),
            ("records fed", f"{counts.records:,} in {counts.verbs['append']:,} appends"),
            ("other verbs", counted({k: v for k, v in counts.verbs.items() if k != "append"})),
            ("  refused", counted(counts.refused)),
            ("  conflicts, settled", f"{counted(counts.conflicts)}; {counted(counts.settled)}"),
            ("  lost in outages", counted(counts.lost)),
            ("rounds", f"{kinds['round']:,}, {told.rounds_changed:,} of them changed something"),
            ("Spark jobs", f"{told.jobs:,}: {told.topics_per_job} topics each, at most {told.most_topics_per_job}"),
            ("longest run", f"{told.longest_round_ms / 1000:.1f} s"),
            ("read, written", f"{format_bytes(told.bytes_read)}, {format_bytes(told.bytes_written)}"),
            ("records in, removed", f"{told.records_in:,}, {told.records_removed:,}"),
            ("  one after another", f"{self.rounds_in_turn:,} pairs of rounds of two cleaners on a log"),
            ("conflicts, abandoned", f"{kinds['conflict']}, {kinds['abandoned']}"),
            ("failed, trouble", f"{kinds['failed']}, {kinds['trouble']}, quarantined {kinds['quarantined']}"),
            ("  explained", counted(told.explained)),
            ("  unexplained", len(told.unexplained)),
            ("kills, freezes", ", ".join(f"{s.kind} {s.cleaner}" for s in self.strikes) or "none"),
            ("taken over", f"{len(taken)} of {held} topics, after {_seconds(taken)}"),
            ("starts", f"{len(self.lives)}, at work after {told.longest_start_s:.1f} s at most"),
            ("stops", _seconds([life.stopped_s for life in self.lives if life.stopped_s is not None])),
            ("lost work", f"{self.never_named.files} files, {format_bytes(self.never_named.size_bytes)}"),
            ("longest overdue", f"{told.longest_overdue_ms / 1000:.1f} s, usual {told.usual_overdue_ms / 1000:.1f} s"),
            ("  overdue rounds", told.overdue_rounds),
            ("looks with work", f"{kinds['looked']}, {told.usual_look_ms} ms, at most {told.longest_look_ms} ms"),
            ("retained, expired", f"{kinds['retained']} times, {told.versions_expired} versions"),
            ("swept", f"{told.swept_files:,} files, {format_bytes(told.swept_bytes)}"),
            ("stored at the end", f"{self.stored_files:,} files, {format_bytes(self.stored_bytes)}"),
            ("records compared", f"{self.records_compared:,}; {self.verified} topics verified on Spark as well"),
        ]
        rows += [row for part in self.parts for row in part.rows()]
        lines = [f"{name:<22}{value}" for name, value in rows]
        for memory in self._memory():
            parts = [f"{memory[f'{what}_{when}_bytes'] / 2**20:.0f}" for what in ("program", "all") for when in WHEN]
            lines.append(
                f"memory {memory['cleaner']:<15}program {' '.join(parts[:3])} MiB, all {' '.join(parts[3:])} MiB, "
                f"over {memory['age_s']} s"
            )
        return "\n".join(lines)


WHEN = ("start", "middle", "end")


def _strike(strike: Strike) -> dict[str, Any]:
    return {
        "cleaner": strike.cleaner,
        "kind": strike.kind,
        "topics_held": len(strike.held),
        "taken_over": len(strike.taken_over_s),
        "longest_s": round(max(strike.taken_over_s.values(), default=0.0), 1),
    }


def _middle(values: Any) -> int:
    return int(median(values))


def counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "none"


def _seconds(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{min(values):.1f} to {max(values):.1f} s"
