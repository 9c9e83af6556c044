"""A run of the long random test, told in the language of the scenarios; what has no word there is prose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from lithify.model.record import Record


@dataclass(slots=True)
class Story:
    """The lines of a run."""

    lines: list[str] = field(default_factory=list)

    def tell(self, *words: object) -> None:
        """One command."""
        self.lines.append(" ".join(["> " + str(words[0]), *(str(word) for word in words[1:] if word != "")]))

    def tell_records(self, verb: str, records: Sequence[Record]) -> None:
        """One command for each log: of the batches here, a scenario knows those to one log."""
        for partition in sorted({record.partition or 0 for record in records}):
            mine = [record for record in records if record.partition == partition]
            self.tell(verb, f"{partition}:", *map(_drawn, mine))

    def say(self, prose: str) -> None:
        self.lines.append(prose)

    @contextmanager
    def meanwhile(self, call: int, before: int) -> Iterator[None]:
        """Lines of this block come before line `before`: a scenario says first what others do meanwhile."""
        told = len(self.lines)
        try:
            yield
        finally:
            others = [line.replace("> ", f"> meanwhile, call {call}: ", 1) for line in self.lines[told:]]
            self.lines[told:] = []
            self.lines[before:before] = others


def _drawn(record: Record) -> str:
    key = "·" if record.key is None else record.key.decode() or "''"
    value = "∅" if record.value is None else record.value.decode() or "''"
    place = "" if record.offset is None else f"@{record.offset}"
    header = f"#{int.from_bytes(record.headers[-1][1] or b'', 'big', signed=True)}" if record.headers else ""
    return f"{key}={value}{place}!{record.timestamp}{header}"
