"""Streams the history of a git repository into a topic, and proves the compacted topic against git.

A repository is a changelog with keys that every developer has at hand: each commit on the first-parent
line of a branch sets some paths to new contents and deletes others. So the topic gets

    key        path, as git's raw bytes
    value      mode and object id, such as b"100644 8baef1b4abc478178b004d62031cf7fe6db6f903";
               none where the path was deleted: a tombstone
    timestamp  commit time

and after compaction its live keys and values must be what `git ls-tree -r` says of the last
commit, which Lithify had no part in working out.

    python examples/git_history.py ~/src/kafka --compact-every 2000

History is read as a stream and appended in batches, so memory does not grow with its length; only
the comparison at the end holds the paths of one commit. Commit times are taken as they are, also
where they go back, as they do in most repositories: offsets say what came later. A time before
1970 or after the year 9999 is moved to that bound and counted.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

import pyarrow as pa

import lithify

LATEST_MS = 253_402_300_799_000
"""The last second of the year 9999."""
NO_PATH = b"000000"
"""The mode that git gives to the side of a change where there is no file."""
DIFFERENCES_SHOWN = 10

_LINE = ("--first-parent", "-m", "--reverse", "--root")
_FORM = ("--raw", "-z", "--format=commit %ct", "--no-abbrev", "--no-color", "--no-show-signature")
_WHOLE = ("--no-renames", "--no-relative", "--ignore-submodules=none")
"""What `git log` is to go through, how to write it, and that nothing is left out."""


@dataclass(frozen=True, slots=True)
class Change:
    """One path in one commit. `value` is None where the commit deleted it."""

    path: bytes
    value: bytes | None
    commit: int
    """Its commit's number on the way from the first one, from 1."""
    timestamp_s: int


@dataclass(slots=True)
class Outcome:
    """What was done and found; also what `--json` prints."""

    repository: str
    revision: str
    topic: str
    commits: int = 0
    records: int = 0
    tombstones: int = 0
    timestamps_moved: int = 0
    rounds: int = 0
    records_left: int = 0
    live_keys: int = 0
    paths_in_revision: int = 0
    differences: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        return not self.differences

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self.seconds[phase] = round(self.seconds.get(phase, 0.0) + time.monotonic() - begun, 3)


def tokens(stream: IO[bytes]) -> Iterator[bytes]:
    """The parts of a stream that NUL bytes separate."""
    rest = b""
    while chunk := stream.read(1 << 16):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole
    if rest:
        yield rest


def changes(stream: IO[bytes]) -> Iterator[Change]:
    """What `git log` says in the form that `history` asks for, one change at a time.

    Which token is a path follows from the one before it, so a path may look like anything.
    """
    commit, timestamp_s = 0, 0
    parts = tokens(stream)
    for token in parts:
        head = token.lstrip(b"\n")
        if head.startswith(b"commit "):
            commit += 1
            timestamp_s = int(head[len(b"commit ") :])
        elif head.startswith(b":"):
            _, mode, _, blob, _ = head.split(b" ")
            yield Change(next(parts), None if mode == NO_PATH else mode + b" " + blob, commit, timestamp_s)
        elif head:
            raise ValueError(f"git log said something unexpected: {head[:80]!r}")


def history(repository: Path, revision: str) -> Iterator[Change]:
    """The changes of the first-parent line up to `revision`, oldest first."""
    command = ["git", "-C", str(repository), "log", *_LINE, *_FORM, *_WHOLE, revision, "--"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as git:
        assert git.stdout is not None  # it was asked for
        yield from changes(git.stdout)
    if git.returncode:
        raise subprocess.CalledProcessError(git.returncode, command)


def paths_at(repository: Path, revision: str) -> dict[bytes, bytes]:
    """By path, mode and object id of every file, link and submodule of a commit."""
    command = ["git", "-C", str(repository), "ls-tree", "-r", "-z", "--full-tree", revision]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as git:
        assert git.stdout is not None  # it was asked for
        entries = (entry.partition(b"\t") for entry in tokens(git.stdout))
        objects = {path: b" ".join(facts.split(b" ")[0:3:2]) for facts, _, path in entries}
    if git.returncode:
        raise subprocess.CalledProcessError(git.returncode, command)
    return objects


def resolve(repository: Path, revision: str) -> str:
    """The id of the commit that a revision names, so that a moving branch does not matter."""
    command = ["git", "-C", str(repository), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def batch_of(some: list[Change], outcome: Outcome) -> pa.Table:
    """Changes as one Arrow table of records."""
    times = [change.timestamp_s * 1000 for change in some]
    bounded = [min(max(at, 0), LATEST_MS) for at in times]
    outcome.timestamps_moved += sum(at != moved for at, moved in zip(times, bounded, strict=True))
    return pa.table(
        {
            "key": pa.array([change.path for change in some], pa.binary()),
            "value": pa.array([change.value for change in some], pa.binary()),
            "timestamp": pa.array(bounded, pa.int64()),
        }
    )


def compact(topic: lithify.Topic, outcome: Outcome) -> None:
    """One round over the topic; a log that could not be compacted ends the program."""
    with outcome.timed("compact"):
        report = topic.compact()
    if failed := report.failed:
        raise lithify.LithifyError(f"{report.topic}-{failed[0].partition}: {failed[0].error}")
    outcome.rounds += 1
    outcome.records_left = sum(log.records_out for log in report.logs)


def batches(stream: Iterator[Change], size: int, compact_every: int) -> Iterator[tuple[list[Change], bool]]:
    """Pieces of at most `size` changes, and whether a round is due after each.

    One is due whenever another `compact_every` commits are through, and at the end.
    """
    some: list[Change] = []
    commit = 1
    for change in stream:
        due = compact_every > 0 and (change.commit - 1) // compact_every > (commit - 1) // compact_every
        if some and (due or len(some) == size):
            yield some, due
            some = []
        some.append(change)
        commit = change.commit
    yield some, True


def load(topic: lithify.Topic, stream: Iterator[tuple[list[Change], bool]], outcome: Outcome) -> None:
    """Appends every batch of the stream, with rounds in between."""
    for some, round_due in stream:
        if some:
            with outcome.timed("append"):
                topic.append(batch_of(some, outcome))
            outcome.commits = some[-1].commit
            outcome.records += len(some)
            outcome.tombstones += sum(change.value is None for change in some)
        if round_due:
            compact(topic, outcome)
        print(f"{outcome.commits} commits, {outcome.records} records, {outcome.rounds} rounds", file=sys.stderr)


def compare(topic: lithify.Topic, expected: dict[bytes, bytes], outcome: Outcome) -> None:
    """Holds the latest value of every live key against what git says; names what differs."""
    with outcome.timed("compare"):
        live = {
            key: value
            for part in topic.table().select(["key", "value"]).to_batches()
            for key, value in zip(part.column("key").to_pylist(), part.column("value").to_pylist(), strict=True)
        }
        outcome.live_keys, outcome.paths_in_revision = len(live), len(expected)
        different = (path for path in sorted(live | expected) if live.get(path) != expected.get(path))
        outcome.differences = [
            f"{path!r}: the topic has {live.get(path)!r}, git has {expected.get(path)!r}"
            for path in islice(different, DIFFERENCES_SHOWN)
        ]


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Streams a git history into a topic and compares the two.")
    parser.add_argument("repository", type=Path, help="a clone, bare or not")
    parser.add_argument("--revision", default="HEAD", help="where the history ends (default: HEAD)")
    parser.add_argument("--warehouse", help="as for lithify.open (default: ./lithify-warehouse)")
    parser.add_argument("--topic", help="a topic that is not there yet (default: git/NAME-OF-THE-CLONE)")
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--batch", type=int, default=20_000, metavar="RECORDS", help="records per append")
    parser.add_argument("--compact-every", type=int, default=2_000, metavar="COMMITS", help="0: only at the end")
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON object")
    return parser.parse_args(given)


def main(given: list[str] | None = None) -> int:
    """Returns 0 if topic and git agree, 3 if they do not, 1 if something failed."""
    asked = arguments(given)
    try:
        revision = resolve(asked.repository, asked.revision)
        name = asked.topic or "git/" + re.sub(r"[^A-Za-z0-9._-]", "-", asked.repository.resolve().name)
        outcome = Outcome(str(asked.repository), revision, name)
        lake = lithify.open(asked.warehouse)
        # Commit times may lie in the future; that is no reason to refuse a record here.
        config = {"message.timestamp.after.max.ms": LATEST_MS}
        topic = lake.create_topic(name, asked.partitions, config=config)
        with outcome.timed("whole"):
            load(topic, batches(history(asked.repository, revision), asked.batch, asked.compact_every), outcome)
            compare(topic, paths_at(asked.repository, revision), outcome)
    except lithify.LithifyError as error:
        print(f"git_history: {error}", file=sys.stderr)
        return error.exit_code
    except subprocess.CalledProcessError as error:
        print(f"git_history: git {error.cmd[3]} failed on {asked.repository}", file=sys.stderr)
        return 1
    report(outcome, as_json=asked.json)
    return 0 if outcome.equal else 3


def report(outcome: Outcome, *, as_json: bool) -> None:
    """Prints what was done and whether topic and git agree."""
    if as_json:
        print(json.dumps({**asdict(outcome), "equal": outcome.equal}))
        return
    spent = ", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in outcome.seconds.items())
    print(f"{outcome.commits} commits gave {outcome.records} records, {outcome.tombstones} of them deletes ({spent})")
    print(f"{outcome.rounds} rounds left {outcome.records_left} records, {outcome.live_keys} live keys")
    if outcome.equal:
        print(f"They are the {outcome.paths_in_revision} paths of {outcome.revision}, with the same modes and objects.")
    for difference in outcome.differences:
        print(f"DIFFERENT {difference}")


if __name__ == "__main__":
    sys.exit(main())
