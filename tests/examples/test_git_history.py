"""`examples/git_history.py` on real repositories: after compaction the topic is what git says."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "git_history.py"
COMMITS = 300
ENOUGH_COMMITS = 20
ROUNDS = 5

ODD_PATHS = [
    b"commit 1",
    b":100644 100644 0 0 M",
    b"a\nb",
    b"tab\there",
    b"quo\"te'",
    b" leading and trailing ",
    b"\xff\xfe not utf-8",
    "grüße/✓".encode(),
    b"-n",
    b"deep/er/and/deep/er",
]


@pytest.fixture(scope="module")
def git_history():
    spec = importlib.util.spec_from_file_location("git_history", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["git_history"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["git_history"]


def git(repository: Path, *arguments: str, stdin: bytes = b"") -> str:
    who = {f"GIT_{role}_{what}": "tester" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(repository), *arguments]
    result = subprocess.run(command, input=stdin, env=clean | who, capture_output=True, check=True)
    return result.stdout.decode(errors="replace").strip()


def quoted(path: bytes) -> bytes:
    """A path as `git fast-import` reads it, whatever bytes it has."""
    return b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'


def a_repository(folder: Path, commits: int) -> Path:
    """A bare repository whose history adds, changes, renames, deletes and brings back odd paths.

    Every seventh commit merges a side branch; times go back now and then; some commits change nothing.
    """
    chance = random.Random(7)
    paths = ODD_PATHS + [b"dir%d/file%d" % (n % 5, n) for n in range(40)]
    there: set[bytes] = set()
    lines: list[bytes] = []
    for number in range(1, commits + 1):
        at = 1_600_000_000 + number * 60 - (10_000 if number % 11 == 0 else 0)
        lines += [b"commit refs/heads/main", b"mark :%d" % number, b"committer t <t> %d +0000" % at, b"data 0"]
        if number > 1:
            lines.append(b"from :%d" % (number - 1))
        if number > 20 and number % 7 == 0:
            lines.append(b"merge :%d" % (number - 10))
        for path in chance.sample(paths, chance.randrange(4)):
            if path in there and chance.random() < 0.4:
                there.discard(path)
                lines.append(b"D " + quoted(path))
            elif there and chance.random() < 0.15 and path not in there:
                source = chance.choice(sorted(there))
                there = (there - {source}) | {path}
                lines.append(b"R " + quoted(source) + b" " + quoted(path))
            else:
                there.add(path)
                mode = chance.choice([b"100644", b"100755", b"120000"])
                content = b"%d" % chance.randrange(50)
                lines += [b"M " + mode + b" inline " + quoted(path), b"data %d" % len(content), content]
        lines.append(b"")
    folder.mkdir()
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    git(folder, "fast-import", "--quiet", stdin=b"\n".join(lines) + b"\n")
    return folder


def has_a_history(repository: Path) -> bool:
    """Whether this is a clone that is not shallow and has some commits."""
    try:
        shallow = git(repository, "rev-parse", "--is-shallow-repository") == "true"
        return not shallow and int(git(repository, "rev-list", "--count", "--first-parent", "HEAD")) >= ENOUGH_COMMITS
    except subprocess.CalledProcessError:
        return False  # an export without its history


def run(repository: Path, warehouse: Path, *arguments: str) -> tuple[dict, str]:
    """The example as its users run it; what it printed, and its progress."""
    command = [sys.executable, str(SCRIPT), str(repository), "--warehouse", str(warehouse), "--json", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), result.stderr


@pytest.mark.spark
def test_a_made_history_with_odd_paths_equals_git(tmp_path):
    repository = a_repository(tmp_path / "odd.git", COMMITS)
    outcome, progress = run(
        repository, tmp_path / "lake", "--batch", "70", "--compact-every", "100", "--partitions", "2"
    )
    assert outcome["equal"] is True
    assert outcome["differences"] == []
    listed = git(repository, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert outcome["live_keys"] == outcome["paths_in_revision"] == len(listed) > 20
    assert outcome["rounds"] == 3
    assert outcome["tombstones"] > 20
    assert outcome["records"] > 2 * outcome["records_left"]
    assert f"{outcome['commits']} commits, {outcome['records']} records, 3 rounds" in progress


@pytest.mark.spark
def test_the_history_of_this_project_equals_git(tmp_path):
    repository = ROOT if has_a_history(ROOT) else a_repository(tmp_path / "made.git", COMMITS)
    commits = int(git(repository, "rev-list", "--count", "--first-parent", "HEAD"))
    every = max(ENOUGH_COMMITS // 2, commits // ROUNDS)  # as many rounds however long the history gets
    outcome, _ = run(repository, tmp_path / "lake", "--topic", "project", "--compact-every", str(every))
    assert outcome["equal"] is True
    assert outcome["live_keys"] == outcome["paths_in_revision"] > 0
    assert 1 < outcome["rounds"] <= ROUNDS + 2


def test_a_difference_is_found_and_named(git_history):
    class Topic:
        """Stands in for a compacted topic in which one path is stale and one should be gone."""

        def table(self):
            import pyarrow as pa

            return pa.table({"key": [b"same", b"stale", b"gone"], "value": [b"1", b"1", b"1"]})

    outcome = git_history.Outcome("repository", "revision", "topic")
    git_history.compare(Topic(), {b"same": b"1", b"stale": b"2", b"missing": b"3"}, outcome)
    assert outcome.equal is False
    assert outcome.differences == [
        "b'gone': the topic has b'1', git has None",
        "b'missing': the topic has None, git has b'3'",
        "b'stale': the topic has b'1', git has b'2'",
    ]


def test_a_path_that_looks_like_a_header_is_a_path(git_history):
    blob = b"8" * 40
    said = b"commit 17\0\n:000000 100644 %b %b A\0commit 99\0:100644 000000 %b %b D\0:x\0commit 18\0" % (4 * (blob,))
    found = list(git_history.changes(io.BytesIO(said)))
    assert [(c.path, c.value, c.commit, c.timestamp_s) for c in found] == [
        (b"commit 99", b"100644 " + blob, 1, 17),
        (b":x", None, 1, 17),
    ]


def test_output_that_is_not_a_log_is_an_error(git_history):
    with pytest.raises(ValueError, match="unexpected"):
        list(git_history.changes(io.BytesIO(b"commit 17\0fatal: no\0")))


def test_batches_end_where_a_round_is_due(git_history):
    stream = [git_history.Change(b"p", None, commit, 0) for commit in (1, 1, 1, 2, 5, 6, 9)]
    found = [([c.commit for c in some], due) for some, due in git_history.batches(iter(stream), 2, 4)]
    assert found == [([1, 1], False), ([1, 2], True), ([5, 6], True), ([9], True)]


def test_a_folder_that_is_no_repository_is_one_clear_line(tmp_path):
    command = [sys.executable, str(SCRIPT), str(tmp_path), "--warehouse", str(tmp_path / "lake")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr.splitlines() == [f"git_history: git rev-parse failed on {tmp_path}"]
