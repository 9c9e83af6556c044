"""Names the tests that a change of a file can break, nearest first, by who imports whom.

    scripts/tests_for.py src/lithify/rules/compaction/planner.py   the tests at most two imports away, and what is left
    scripts/tests_for.py --away 1 FILE... | xargs pytest           only those that import it themselves

A test that has the file's name is nearest, whatever it imports: `test_produce.py` runs the verb `produce` by its name.
A test that starts the program as a process imports all of it. Of a file that nobody imports, such as a page of `docs`,
the tests of the repository itself are named.
"""

from __future__ import annotations

import argparse
import ast
import re
import signal
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("src", "tests", "scripts", "examples", "bench")
AWAY = 2
PROGRAM = "lithify.__main__"
STARTS_IT = "support.processes.programs"
RUNS_VERBS = "lithify.cli.main"
_LATER = re.compile(r"[a-z_.]+:[a-z_]+")
"""How `lithify.cli.verbs` names what it imports when it runs."""


def module_of(file: Path) -> str:
    """The dotted name of a Python file, below whichever folder of sources it is in."""
    parts = file.relative_to(ROOT).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(name: str, is_package: bool, code: str) -> Iterator[str]:
    """What a module imports, also within functions; of `from a import b` both, as `b` may be a module."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = name.split(".")
            above = parts[: len(parts) - node.level + is_package] if node.level else []
            start = ".".join([*above, *([node.module] if node.module else [])])
            yield start
            yield from (f"{start}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _LATER.fullmatch(node.value):
            yield f"lithify.cli.{node.value.partition(':')[0]}"


def importers() -> tuple[Mapping[str, Path], Mapping[str, set[str]]]:
    """Every module's file, and by module those that import it."""
    files = {module_of(file): file for folder in SOURCES for file in (ROOT / folder).rglob("*.py")}
    by: dict[str, set[str]] = defaultdict(set)
    for name, file in files.items():
        for other in imported(name, file.name == "__init__.py", file.read_text("utf-8")):
            by[other].add(name)
        if file.name == "conftest.py":  # which pytest imports for every test below it
            for test in file.parent.rglob("test_*.py"):
                by[name].add(module_of(test))
    by[PROGRAM].add(STARTS_IT)
    for them in by.values():
        if "lithify.cli.verbs" in them:
            them.add(RUNS_VERBS)
    return files, by


def distances(changed: Iterable[str], by: Mapping[str, set[str]]) -> dict[str, int]:
    """How many imports away from what has changed each module is that it can break."""
    distance = dict.fromkeys(changed, 0)
    waiting = deque(distance)
    while waiting:
        name = waiting.popleft()
        for importer in by.get(name, ()):
            if importer not in distance:
                distance[importer] = distance[name] + 1
                waiting.append(importer)
    return distance


def tests_for(changed: Sequence[Path], by: Mapping[str, set[str]], files: Mapping[str, Path]) -> list[tuple[int, Path]]:
    """The tests, nearest first, and how many imports away each is; those of the repository are near to everything."""
    away = distances((module_of(file.resolve()) for file in changed if file.suffix == ".py"), by)
    tests = {files[name]: far for name, far in away.items() if files[name].name.startswith("test_")}
    names = {f"test_{file.stem}" for file in changed}
    tests |= {file: 0 for file in files.values() if file.stem in names}
    tests |= dict.fromkeys((ROOT / "tests").glob("test_*.py"), 0)
    return sorted((far, file) for file, far in tests.items())


def main() -> int:
    """Prints them; returns the exit code."""
    parser = argparse.ArgumentParser(description="Names the tests that a change of a file can break, nearest first.")
    parser.add_argument("--away", type=int, default=AWAY, metavar="N", help="at most so many imports (default: 2)")
    parser.add_argument("file", nargs="+", type=Path)
    arguments = parser.parse_args()
    if missing := [file for file in arguments.file if not file.is_file()]:
        parser.error(f"no such file: {missing[0]}")
    files, by = importers()
    tests = tests_for(arguments.file, by, files)
    near = [file for far, file in tests if far <= arguments.away]
    left = Counter(file.relative_to(ROOT / "tests").parts[0] for far, file in tests if far > arguments.away)
    print("\n".join(str(file.relative_to(ROOT)) for file in near))
    sections = ", ".join(f"{count} of {section}" for section, count in left.most_common())
    print(f"{len(near)} files; farther away: {sections or 'none'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` reads no more
    sys.exit(main())
