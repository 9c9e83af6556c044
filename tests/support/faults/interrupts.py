"""Ctrl-C at every point of a run at which Python takes signals: between calls, in loops, at the begin of a function.

a run that is only counted ─► places in the code, and how often it is there ─► one run for each, struck there
"""

from __future__ import annotations

import dis
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lithify

Place = tuple[CodeType, int]

_HERE = {dis.opmap[name] for name in ("RESUME", "JUMP_BACKWARD")}
_AFTER = {code for name, code in dis.opmap.items() if name.startswith("CALL")}


@dataclass(slots=True)
class Interrupt:
    """Raises `KeyboardInterrupt` when the code of these folders of the product is at a place for the n-th time."""

    folders: tuple[str, ...]
    place: Place | None = None
    time: int = 0
    seen: Counter[Place] = field(default_factory=Counter)
    struck: bool = False
    _before: dict[FrameType, int] = field(default_factory=dict)

    def during(self, run: Callable[[], object]) -> None:
        """Runs it; the interrupt is up to the caller."""
        tracer = sys.gettrace()
        sys.settrace(self._called)
        try:
            run()
        finally:
            sys.settrace(tracer)
            self._before.clear()

    def _called(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self.folders):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._within

    def _within(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "opcode":
            code, at = frame.f_code, frame.f_lasti
            now = code.co_code[at]
            if now in _HERE or self._before.get(frame) in _AFTER:
                self._reach((code, at))
            self._before[frame] = now
        elif event == "return":
            self._before.pop(frame, None)
        return self._within

    def _reach(self, place: Place) -> None:
        self.seen[place] += 1
        if not self.struck and place == self.place and self.seen[place] == self.time:
            self.struck = True
            raise KeyboardInterrupt(f"{place[0].co_qualname} at {place[1]}, time {self.time}")


def interrupts(run: Callable[[], object], *folders: str) -> Iterator[Interrupt]:
    """Interrupts at every place that `run` comes to in these folders: the first time or the last, in turn."""
    package = Path(lithify.__file__).parent
    where = tuple(str(package / folder) for folder in folders)
    counted = Interrupt(where)
    counted.during(run)
    assert len(counted.seen) > 20, "the run is hardly in this code: nothing would be tried"
    for number, (place, times) in enumerate(counted.seen.items()):
        yield Interrupt(where, place, times if number % 2 else 1)
