"""The port of `verify`: an inspector that reads whole files and compares records.

service/proof ──► Inspector   every record of the files, judged by the proofs they are part of
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lithify.model.finding import Finding, FindingKind
from lithify.ports.engine import Progress
from lithify.rules.proof.inspection import InspectedSegment
from lithify.rules.proof.transition import Proof


@dataclass(frozen=True, slots=True)
class RecordFinding:
    """What is wrong with the record at an offset, found by the proof of that number."""

    proof: int
    offset: int
    kind: FindingKind


@dataclass(frozen=True, slots=True)
class InspectionResult:
    """What reading all files found: about files, about single records, and the tombstones counted.

    `tombstones` has by partition a number for each step, and one for the offsets after the last.
    """

    files: tuple[Finding, ...]
    records: tuple[RecordFinding, ...]
    tombstones: Mapping[int, tuple[int, ...]]


class Inspector(Protocol):
    """Reads files whole and compares what is in them, record by record."""

    def inspect(
        self,
        segments: Sequence[InspectedSegment],
        proofs: Sequence[Proof],
        most: int,
        progress: Progress,
    ) -> InspectionResult:
        """At most `most + 1` findings about records, so that the caller can tell whether there were more."""
        ...
