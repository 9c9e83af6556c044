"""Runs the project's checks section by section and says how long each took.

    scripts/check.py              every section but `pulsar`, `shells`, `pythons`, `browser` and `kcat`
    scripts/check.py --pulsar     that one too, beside the others; so do `--shells` and the other three
    scripts/check.py --quick      those that take seconds
    scripts/check.py store spark  only these

A folder of `tests/` is a section of its own name, so that none is left out. Sections that need what a machine may lack
run only if they are asked for. All sections run even if one fails; the exit code is 1 if any did.

Two cores are kept busy by five lanes, as much of a test is waiting for a JVM, a broker or a timeout:

    lane 1       archives of classes, sessions of Spark      ──┐
    lane 2       checks of the code, a Kafka                 ──┼─► those alone ──► summary
    lanes 3-5    all other tests, a Pulsar among the first   ──┘

A section is one process there: it collects its tests, and starts its session and its broker, once. By itself a section
has two processes. A lane without tests takes from the others, the short ones first. Tests marked `alone` are sections
like `backends-alone`, which `backends` on the command line names too.

What a section prints comes when it has ended, in one piece; of a section that runs alone as it comes. At the end stand
what failed once more, as its section may have printed it half an hour before, and the summary. The summary has each
section's seconds on the clock, and those of processors that its processes used: only these can be compared between
runs on a shared machine. Servers that outlive their section's command, and JVMs of Spark, are in the last line alone.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from machine_time import MachineTime, switch_less
from other_pythons import other_versions
from temporary_files import temporary_files_in_memory

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent

QUICK = ("format", "lint", "types", "imports", "tidy", "unit", "properties", "scenarios")
CODE = ("format", "lint", "types", "imports", "tidy")
SPARK = ("classes", "spark", "examples", "engines", "cluster")
"""Before the others, what makes their JVMs start sooner."""
KAFKA = (*CODE, "kafka")
"""After what ends soon if it fails."""
TOGETHER = (
    "formats",
    "cli",
    "mutated",
    "examples",
    "engines",
    "cluster",
    "shells",
    "browser",
    "kcat",
    "site",
    "trial",
    "wheels",
    "tidy",
)
"""In one process also by themselves: they share a session or a cluster, or are too short to split."""
BY_FILE = ("kafka", "pulsar")
"""By themselves each process takes whole files, as these have brokers of their own, which start for seconds; and takes
them by name, as the long ones have few tests, and would come last."""
SPLIT_THEMSELVES = ("kills",)
"""One process too, but what they start keeps two cores busy."""
LONG = (
    "pulsar",
    "unit",
    "gateway",
    "faults",
    "cli",
    "store",
    "backends",
    "replicas",
    "properties",
    "cleaner",
    "random",
    "groups",
)
"""These folders of tests in front, by their seconds."""
OTHER_LANES = 3
WITH_ALONE = ("backends",)
"""Test folders with tests marked `alone`: they hold the product to seconds, which a busy machine would exceed."""
ALONE = "-alone"

BY_NAME = {
    "pulsar": "Maven, which fetches a real Pulsar",
    "shells": "zsh and fish, as Debian has them",
    "pythons": "every Python that Lithify runs on, each with some 600 MB of packages",
    "browser": "Chromium, as Debian has it",
    "kcat": "kcat, as Debian has it",
}
"""Only where the command line asks for them."""

ONCE_MORE = ("equals_oracle", "source_read", "source_write", "verify")
ON_CLUSTER = ("--on-cluster", *(f"tests/spark/test_{name}.py" for name in ONCE_MORE))
"""After those of `cluster`; `just cluster-suite` runs all that can have their session there."""
LAST_LINES = 12
"""Printed again of a section that failed without naming a test."""
NAMED_TESTS = 20
"""As many tests that failed are named again, of each section."""

RUNNING = set[subprocess.Popen[str]]()
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected)")
_FAILED_TEST = re.compile(r"(FAILED|ERROR) \S+::")


@dataclass(frozen=True, slots=True)
class Section:
    """Commands that pass or fail together."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    folder: Path = ROOT
    """Where they run."""
    split: tuple[str, ...] = ()
    """Options for two processes, where nothing runs beside."""

    @property
    def alone(self) -> bool:
        return self.name.endswith(ALONE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a section ended. `counts` are pytest's; `failures` say what to look for in what it printed."""

    name: str
    seconds: float
    processor_seconds: float
    counts: Counter[str]
    failures: tuple[str, ...]

    def line(self) -> str:
        counts = ", ".join(f"{count} {what}" for what, count in self.counts.items())
        times = f"{self.seconds:>8.1f} s{self.processor_seconds:>9.1f} of processors"
        return f"{'FAILED' if self.failures else 'ok':<8}{self.name:<14}{times}  {counts}".rstrip()


def sections() -> tuple[Section, ...]:
    """All of them, in the order in which a lane takes them: the long ones in front, but for what others need."""
    scripts = [folder for folder in ("scripts", "examples", "bench") if any((ROOT / folder).glob("*.py"))]
    return (
        Section("classes", (("python", "-m", "support.class_trainings"),), ROOT / "tests"),
        Section("format", (("ruff", "format", "--check", "."),)),
        Section("lint", (("ruff", "check", "."),)),
        Section("types", (("mypy",), ("mypy", *scripts))),
        Section("imports", (("lint-imports", "--no-cache"),)),
        _tests("tidy", [f"tests/{file.name}" for file in sorted((ROOT / "tests").glob("test_*.py"))]),
        Section("pythons", tuple(("python", "scripts/other_pythons.py", version) for version in other_versions())),
        *(section for folder in _test_folders() for section in _tests_of(folder)),
    )


def _test_folders() -> list[str]:
    folders = {file.relative_to(ROOT / "tests").parts[0] for file in (ROOT / "tests").glob("*/**/test_*.py")}
    return [*LONG, *sorted(folders.difference(LONG))]


def _tests_of(folder: str) -> tuple[Section, ...]:
    path = f"tests/{folder}"
    if folder not in WITH_ALONE:
        return (_tests(folder, [path]),)
    return _tests(folder, ["-m", "not alone", path]), _tests(folder + ALONE, ["-m", "alone", path])


def _tests(name: str, which: list[str]) -> Section:
    workers = () if name in TOGETHER + SPLIT_THEMSELVES else ("-n", "3" if name.endswith(ALONE) else "2")
    by_file = ("--dist", "loadfile", "--no-loadscope-reorder") if name in BY_FILE else ()
    pytest = ("pytest", "-q", "--durations=5", "--durations-min=5")
    commands = [(*pytest, *which)]
    if name == "cluster":
        commands.append((*pytest, *ON_CLUSTER))
    return Section(name, tuple(commands), split=(*workers, *by_file))


def run(section: Section, *, alone: bool = True) -> Outcome:
    """Runs a section. Its output is passed on as it comes, or at the end if others run beside it."""
    shown: list[str] = []
    tell = partial(print, end="", flush=True) if alone else shown.append
    tell(f"\n=== {section.name}\n")
    begun, processor_seconds = time.monotonic(), 0.0
    failures: list[str] = []
    counts: Counter[str] = Counter()
    for program, *arguments in section.commands:
        command = [str(BIN / program), *arguments, *(section.split if alone else ())]
        last = deque[str](maxlen=LAST_LINES)
        failed_tests: list[str] = []
        with subprocess.Popen(
            command, cwd=section.folder, stdout=subprocess.PIPE, text=True, errors="replace"
        ) as process:
            RUNNING.add(process)
            for line in process.stdout or ():
                tell(line)
                if line.strip():
                    last.append(line)
                if _FAILED_TEST.match(line):
                    failed_tests.append(line)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            RUNNING.discard(process)
        processor_seconds += used.ru_utime + used.ru_stime
        counts.update({what: int(count) for count, what in _COUNT.findall(last[-1] if last else "")})
        if process.returncode:
            ended = f"{section.name}: {program} ended with {process.returncode}\n"
            failures += [ended, *(failed_tests[:NAMED_TESTS] or last)]
    print("".join(shown), end="", flush=True)
    return Outcome(section.name, time.monotonic() - begun, processor_seconds, counts, tuple(failures))


def run_all(wanted: Sequence[Section]) -> list[Outcome]:
    """Most of them in lanes, and at the end those that run alone."""
    shared = [section for section in wanted if not section.alone]

    def named(names: Sequence[str]) -> list[Section]:
        return [section for name in names for section in shared if section.name == name]

    others = deque(section for section in shared if section.name not in SPARK + KAFKA)
    queues = (deque(named(SPARK)), deque(named(KAFKA)), *[others] * OTHER_LANES)

    def run_lane(own: deque[Section]) -> list[Outcome]:
        outcomes = []
        while section := next_of((own, *(queue for queue in queues if queue is not own))):
            outcomes.append(run(section, alone=len(shared) == 1))
        return outcomes

    with ThreadPoolExecutor(len(queues)) as lanes:
        running = [lanes.submit(run_lane, queue) for queue in queues]
        try:
            done = [outcome for ended in running for outcome in ended.result()]
        except KeyboardInterrupt:  # which the sections that run have received too
            for queue in queues:
                queue.clear()
            raise
    return done + [run(section) for section in wanted if section.alone]


def next_of(queues: Sequence[deque[Section]]) -> Section | None:
    """The first of a lane's own queue; if it is empty, the last of another lane's: the long ones are in front."""
    own, *others = queues
    with suppress(IndexError):
        return own.popleft()
    for queue in others:
        with suppress(IndexError):
            return queue.pop()
    return None


def interrupted(_signal: int, _frame: object) -> None:
    """SIGTERM ends a run as Ctrl-C does, which the sections receive too."""
    for process in RUNNING:
        process.send_signal(signal.SIGINT)
    raise KeyboardInterrupt


def main() -> int:
    """Runs what the command line asks for; returns the exit code."""
    everything = sections()
    names = [section.name for section in everything if not section.alone]
    parser = argparse.ArgumentParser(description="Runs the project's checks.")
    parser.add_argument("--quick", action="store_true", help=f"only what takes seconds: {', '.join(QUICK)}")
    for name, needed in BY_NAME.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"with `{name}`, which needs {needed}")
    parser.add_argument("section", nargs="*", help=f"only these: {', '.join(names)}")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.section) - set(names)):
        parser.error(f"no such section: {', '.join(unknown)}")
    left_out = [name for name in BY_NAME if not getattr(arguments, name)]
    wanted = arguments.section or (QUICK if arguments.quick else [name for name in names if name not in left_out])
    os.environ.pop("JAVA_TOOL_OPTIONS", None)  # its notice on stderr would be taken for output of ours
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of programs start, and would each compile it all
    switch_less()
    signal.signal(signal.SIGTERM, interrupted)
    begun, machine = time.monotonic(), MachineTime.now()
    with temporary_files_in_memory():
        outcomes = run_all([section for section in everything if section.name.removesuffix(ALONE) in wanted])
    total: Counter[str] = sum((outcome.counts for outcome in outcomes), Counter())
    if failures := [line for outcome in outcomes for line in outcome.failures]:
        print("\n=== what failed\n", *failures, sep="", end="")
    print("\n=== summary", *(outcome.line() for outcome in outcomes), sep="\n")
    seconds, used = time.monotonic() - begun, sum(outcome.processor_seconds for outcome in outcomes)
    counts = ", ".join(f"{count} {what}" for what, count in total.items()) or "no tests"
    print(f"\n{counts} in {seconds:.0f} s, {used:.0f} of processors; {MachineTime.now().since(machine)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
