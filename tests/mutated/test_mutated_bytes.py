"""Every kind of stored file with other bytes than were written: an error that names it, or the truth (C8, C48).

    a warehouse ─► one file changed ─► in a child with little memory: all that can be read, then verbs that write
                                                     │                          │
                                   as it was, or an error with the name    as it was, the file put back:
                                                                           whole, and goes on

A seeded few hundred here; `just mutate MINUTES` goes on with new seeds.
"""

from __future__ import annotations

import os
import resource
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lithify.errors import (
    DamagedError,
    LithifyError,
    LocationChangedError,
    UnknownTopicError,
    UnsupportedFormatError,
    WarehouseError,
)
from lithify.model.names import TopicName
from lithify.service.change.sweep import sweep
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from mutated.lake import DAY_MS, LOOKS, READERS, TOPICS, check_usable, kinds, opened, prepare, records
from mutated.mutations import MUTATIONS, huge
from support.engines.kernel import KernelEngine
from support.processes.forked import result, warm

SECONDS = float(os.environ.get("LITHIFY_MUTATE_SECONDS", "0"))
SEED = int(os.environ.get("LITHIFY_MUTATE_SEED", "0"))
MUTATIONS_OF = {
    "segment": 18,
    "mask": 9,
    "manifest": 18,
    "manifest list": 14,
    "metadata": 24,
    "version record": 10,
    "report": 8,
    "failures": 8,
    "source": 4,
    "promotion": 4,
    "source_ends": 4,
    "rates": 4,
    "catalog.db": 10,
    "format": 6,
}
"""How many in a normal run: more of what has more in it."""

MEMORY_BYTES = 768 * 2**20
"""What a child may map beyond what it was born with: most is for the stacks and arenas of threads."""
CPU_SECONDS = 15

CATALOG = "catalog.db"
FORMAT = "format"
KINDS = tuple(READERS)
MAY_BE_MISSING = ("failures", "source", "promotion", "source_ends", "rates", FORMAT)
"""Documents that not every topic has."""
WRITES = 6
"""Of so many mutations in a normal run one is tried with verbs that write as well."""


@dataclass(frozen=True, slots=True)
class Place:
    """A warehouse, a copy of it to begin with anew, and what can be read of it."""

    folder: Path
    copy: Path
    files: dict[str, dict[TopicName, list[Path]]]
    truth: dict[TopicName, dict[str, Any]]

    def anew(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.copy, self.folder)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("mutated")
    folder = root / "warehouse"
    warm(lambda: prepare(folder))  # of some 400 children none has to import what another has
    shutil.copytree(folder, root / "copy")
    warm(lambda: [(looked(folder, name), written(folder, name)) for name in TOPICS])
    shutil.rmtree(folder)
    shutil.copytree(root / "copy", folder)
    files = result(lambda: kinds(folder))
    assert files.keys() == set(KINDS) - {CATALOG, FORMAT}
    files[CATALOG] = {name: [folder / CATALOG] for name in TOPICS}
    files[FORMAT] = {name: [folder / ".lithify" / "format.json"] for name in TOPICS}
    truth = result(lambda: {name: looked(folder, name) for name in TOPICS})
    assert [found for looks in truth.values() for found in looks.values() if isinstance(found, Told)] == []
    return Place(folder, root / "copy", files, truth)


@dataclass(frozen=True, slots=True)
class Told:
    """An error, as far as it travels."""

    kind: type[Exception]
    text: str

    @property
    def expected(self) -> bool:
        return issubclass(self.kind, LithifyError) and not self.out_of_memory

    @property
    def out_of_memory(self) -> bool:
        return any(sign in self.text for sign in ("MemoryError", "malloc of size", "realloc of size"))


@dataclass(frozen=True, slots=True)
class Case:
    """A file and what is done to it."""

    kind: str
    topic: TopicName
    path: Path
    how: str
    change: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.kind} {self.path.name} of {self.topic}, {self.how}"


def looked(folder: Path, name: TopicName, parts: Iterable[str] = LOOKS) -> dict[str, Any]:
    """What can be read of a topic, each part by a program of its own."""
    return {part: tried(lambda look=LOOKS[part]: repr(look(opened(folder), name))) for part in parts}


def tried(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        return Told(type(error), str(error))


def written(folder: Path, name: TopicName) -> dict[str, Any]:
    """What becomes of verbs that write, a day later."""

    def verb(action: Callable[[Any], Any]) -> Any:
        return tried(lambda: action(opened(folder, later_ms=DAY_MS, ids_from=200)))

    def a_round(warehouse: Any) -> str:
        report = compact(warehouse, KernelEngine(), name, RunRequest())
        if report.failed:
            raise DamagedError(report.failed[0].error)
        return "done"

    return {
        "append": verb(lambda w: append(w, name, records(7)) and "done"),
        "round": verb(a_round),
        "sweep": verb(lambda w: sweep(w, name, delete=True) and "done"),
    }


def limited(action: Callable[[], Any]) -> Any:
    """The result of an action in a child with little memory and time."""

    def child() -> Any:
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES, mapped + MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        return action()

    return result(child)


def cases(place: Place, kind: str, chance: Random) -> Iterator[Case]:
    """Without end."""
    of_kind = place.files[kind]
    while True:
        name = chance.choice(list(of_kind))
        path = chance.choice(of_kind[name])
        content = path.read_bytes()
        others = [p for paths in of_kind.values() for p in paths if p != path and p.read_bytes() != content]
        match chance.randrange(10):
            case 0:
                yield Case(kind, name, path, "endless", lambda p=path: huge(p))
            case 1 | 2 if others:
                other = chance.choice(others)
                text = other.read_bytes()
                yield Case(kind, name, path, f"swapped with {other.name}", lambda p=path, t=text: _put(p, t))
            case _:
                mutation = chance.choice(MUTATIONS)
                changed = mutation(content, chance)
                if changed != content:
                    yield Case(kind, name, path, mutation.__name__, lambda p=path, t=changed: _put(p, t))


def _put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


@dataclass(frozen=True, slots=True)
class Effort:
    """What is tried on a mutation: which parts are read, and whether verbs that write follow."""

    parts: Iterable[str]
    writes: bool

    @staticmethod
    def of(kind: str, number: int, chance: Random) -> Effort:
        """All in a long run; a share in a normal one, and in the end all of them there too."""
        if SECONDS:
            return Effort(LOOKS, writes=True)
        mine = READERS[kind]
        parts = {*chance.sample(mine, min(2, len(mine))), chance.choice(list(LOOKS))}
        return Effort(sorted(parts), writes=number % WRITES == 0)


def check(place: Place, case: Case, effort: Effort) -> Counter[str]:
    """What came of a mutation; fails where something was changed without a word."""
    whole = case.path.read_bytes()
    case.change()
    said: Counter[str] = Counter()
    for part, found in limited(lambda: looked(place.folder, case.topic, effort.parts)).items():
        said[_judged(place, case, part, found)] += 1
    if not effort.writes:
        case.path.write_bytes(whole)
        return said
    for verb, found in limited(lambda: written(place.folder, case.topic)).items():
        said[_judged_verb(case, verb, found)] += 1
    if case.path.exists() or case.kind in ("segment", "mask"):
        case.path.write_bytes(whole)
    if case.kind != CATALOG:
        result(lambda: check_usable(opened(place.folder, later_ms=2 * DAY_MS, ids_from=400), case.topic))
    place.anew()
    return said


def _judged(place: Place, case: Case, part: str, found: Any) -> str:
    if isinstance(found, Told):
        _check_told(case, part, found)
        return "told"
    if case.kind == "rates" and part == "rates":
        return "same" if found == place.truth[case.topic][part] else "none"  # one that cannot be read is none
    if case.kind == CATALOG and part in ("topics", "at its token", "overview"):
        return "same"  # a list of tables is as good as the database that has it
    assert found == place.truth[case.topic][part], f"{case}: {part} changed silently"
    return "same"


def _judged_verb(case: Case, verb: str, found: Any) -> str:
    if isinstance(found, Told):
        _check_told(case, verb, found)
        return "told"
    return "done"


def _check_told(case: Case, part: str, told: Told) -> None:
    assert told.expected, f"{case}: {part}: {told.kind.__name__}: {told.text[:300]}"
    if case.kind == CATALOG:
        assert issubclass(told.kind, WarehouseError | DamagedError | UnknownTopicError), f"{case}: {part}: {told}"
        return
    kinds = (DamagedError, LocationChangedError, UnsupportedFormatError) if case.kind == "metadata" else DamagedError
    assert issubclass(told.kind, kinds), f"{case}: {part}: {told}"
    assert _named(case, told.text), f"{case}: {part}: {told.text[:300]}"


def _named(case: Case, text: str) -> bool:
    """Whether an error names the file; of metadata, what in it is not as it was, or the file that came after it."""
    if case.path.name in text:
        return True
    named = (
        f"{case.topic}: the compacted view",
        f"{case.topic}: the location",
        f"{case.topic}: it was written in",
        f"{case.topic}: something other than Lithify moved the table's main branch",
        ".metadata.json",
    )
    return case.kind == "metadata" and any(name in text for name in named)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.timeout(max(300, SECONDS + 300))
def test_changed_bytes_are_reported_or_do_not_matter(
    kind: str, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """C8, C48: no raw error, no silent change, no wedge, and no memory beyond a bound."""
    until = time.monotonic() + SECONDS / len(KINDS)
    seen: Counter[str] = Counter()
    chance = Random(f"{SEED} {kind}")
    place.anew()
    for number, case in enumerate(cases(place, kind, chance)):
        if number >= MUTATIONS_OF[kind] and time.monotonic() >= until:
            break
        try:
            seen += check(place, case, Effort.of(kind, number, chance))
        except BaseException as error:
            error.add_note(f"LITHIFY_MUTATE_SEED={SEED}, {kind}, mutation {number}: {case}")
            raise
    assert seen["told"] + seen["same"] > 0
    if SECONDS:
        with capsys.disabled():
            print(f"\n{kind}: {number} mutations, {dict(seen)}")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_reported_or_does_not_matter(kind: str, place: Place) -> None:
    """C8, C48, C50: no verb waits for a pipe without a writer, reads an endless device, or takes less for all."""
    made: dict[str, Callable[[Path], object]] = {
        "a pipe": os.mkfifo,
        "a device": lambda path: path.symlink_to("/dev/zero"),
        "a folder": Path.mkdir,
        "nothing": lambda _: None,
    }
    place.anew()
    name = next(iter(place.files[kind]))
    # A record that is none is not listed, and no sweep goes on without it.
    parts = [part for part in READERS[kind] if (kind, part) != ("version record", "closings")]
    if kind in MAY_BE_MISSING:
        del made["nothing"]
    for how, make in made.items():
        path = place.files[kind][name][-1]
        path.unlink()
        make(path)
        case = Case(kind, name, path, f"{how} instead", lambda: None)
        seen = {part: _judged(place, case, part, found) for part, found in _limited(looked, place, name, parts).items()}
        if how == "a pipe":
            seen |= {verb: _judged_verb(case, verb, said) for verb, said in _limited(written, place, name).items()}
            assert seen["sweep"] == "told" or kind in MAY_BE_MISSING, (case, seen)
        place.anew()


def _limited(action: Callable[..., dict[str, Any]], place: Place, *more: Any) -> dict[str, Any]:
    found: dict[str, Any] = limited(lambda: action(place.folder, *more))
    return found
