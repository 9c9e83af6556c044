"""What a process and its descendants take: processor time, bytes that pass, memory by role. Linux only.

Numbers of processes that have ended count where their parent has waited for them. Those of parents that wait for none,
as the daemon of Spark's Python workers, count as they were seen last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGCHLD
from threading import Event, Thread

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_SECONDS = 0.1
_SIGCHLD = 1 << (SIGCHLD - 1)
RESETS_PEAK = "5"
"""Written to `clear_refs`: the peak of a process begins anew."""


@dataclass(frozen=True, slots=True)
class Counters:
    """So far, of a whole tree: seconds, and bytes of all read and write calls, from caches, pipes and sockets, too."""

    cpu_s: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0

    def __add__(self, other: Counters) -> Counters:
        return Counters(
            self.cpu_s + other.cpu_s,
            self.read_bytes + other.read_bytes,
            self.written_bytes + other.written_bytes,
        )


@dataclass(slots=True)
class Used:
    """What a tree took in between, and how busy other processes kept the machine, as a share of its cores."""

    cpu_s: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0
    others: float = 0.0
    peak_bytes: dict[str, int] = field(default_factory=dict)
    """By role, of the largest process: `jvm`, `worker`, `driver`."""


@contextmanager
def measured(root: int) -> Iterator[Used]:
    """Fills in what the tree of process `root` takes meanwhile."""
    used, ended = Used(), Event()
    for process in family(root):
        with suppress(OSError):
            Path(f"/proc/{process}/clear_refs").write_text(RESETS_PEAK)
    unawaited: dict[int, Counters] = {}
    sampler = Thread(target=_sample, args=(root, used.peak_bytes, unawaited, ended), daemon=True)
    _see_unawaited(family(root), unawaited)
    before, busy_before = counters(root, unawaited), _machine()
    sampler.start()
    try:
        yield used
    finally:
        after, busy_after = counters(root, unawaited), _machine()
        ended.set()
        sampler.join()
        used.cpu_s = after.cpu_s - before.cpu_s
        used.read_bytes = after.read_bytes - before.read_bytes
        used.written_bytes = after.written_bytes - before.written_bytes
        busy_s, whole_s = busy_after[0] - busy_before[0], busy_after[1] - busy_before[1]
        used.others = max(0.0, busy_s - used.cpu_s) / max(whole_s, 1 / TICKS)


def counters(root: int, unawaited: Mapping[int, Counters]) -> Counters:
    """Of the tree of process `root`, with those of `unawaited` that have ended."""
    there = family(root)
    gone = (last for process, last in unawaited.items() if process not in there)
    return sum((*map(_counters, there), *gone), Counters())


def _counters(process: int) -> Counters:
    """Of a process, and of children that it has waited for."""
    with suppress(OSError, ValueError):
        io = _colons(f"/proc/{process}/io")
        return Counters(sum(map(int, _stat(process)[11:15])) / TICKS, int(io["rchar"]), int(io["wchar"]))
    return Counters()


def family(root: int) -> list[int]:
    """The process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            children.setdefault(int(_stat(int(entry.name))[1]), []).append(int(entry.name))
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting += children.get(process, [])
    return found


def _sample(root: int, peaks: dict[str, int], unawaited: dict[int, Counters], ended: Event) -> None:
    last = False
    while not last:
        last = ended.wait(SAMPLE_SECONDS)
        there = family(root)
        _see_unawaited(there, unawaited)
        for process in there:
            with suppress(OSError, KeyError, ValueError):
                peak = int(_colons(f"/proc/{process}/status")["VmHWM"].split()[0]) * 1024
                role = _role(process, root)
                peaks[role] = max(peak, peaks.get(role, 0))


def _see_unawaited(processes: Sequence[int], seen: dict[int, Counters]) -> None:
    """Of those whose parent ignores that they end: what the system knows of them goes with them."""
    for process in processes:
        with suppress(OSError, KeyError, ValueError):
            parent = _stat(process)[1]
            if int(_colons(f"/proc/{parent}/status")["SigIgn"], 16) & _SIGCHLD:
                seen[process] = _counters(process)


def _role(process: int, root: int) -> str:
    command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    if command[0].endswith(b"java"):
        return "jvm"
    return "worker" if process != root and b"pyspark.daemon" in command else "driver"


def _stat(process: int) -> list[str]:
    """The fields of `stat` after the name, which may hold anything: the state is the first."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _colons(path: str) -> Mapping[str, str]:
    return dict(line.split(":", 1) for line in Path(path).read_text().splitlines())


def _machine() -> tuple[float, float]:
    """Seconds of all cores since the start: busy, and all."""
    times = [int(ticks) / TICKS for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(times) - times[3] - times[4], sum(times)
