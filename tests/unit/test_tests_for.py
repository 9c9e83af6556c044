"""Which tests a change of a file can break, as `just tests-for` names them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import tests_for as script

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
OF_THE_REPOSITORY = {f"tests/{file.name}" for file in (ROOT / "tests").glob("test_*.py")}


@pytest.fixture(scope="module")
def imports():
    return script.importers()


@pytest.mark.parametrize(
    ("changed", "test", "away"),
    [
        ("src/lithify/rules/compaction/survivors.py", "tests/unit/compaction/test_survivors.py", 1),
        ("tests/cli/conftest.py", "tests/cli/terminal/test_completion.py", 1),
        ("tests/support/processes/shells.py", "tests/shells/test_other_shells.py", 1),
        # by the name that verbs have of it
        ("src/lithify/cli/topics/list.py", "tests/cli/terminal/test_completion.py", 2),
        ("src/lithify/__main__.py", "tests/kills/test_kills.py", 3),  # by the process that it starts
        ("tests/unit/test_tests_for.py", "tests/unit/test_tests_for.py", 0),
        ("docs/README.md", "tests/test_docs.py", 0),
    ],
)
def test_the_tests_of_a_file_are_found(imports, changed: str, test: str, away: int) -> None:
    files, by = imports
    found = {str(file.relative_to(ROOT)): far for far, file in script.tests_for([ROOT / changed], by, files)}
    assert found[test] <= away
    assert found.keys() >= OF_THE_REPOSITORY
    assert changed.startswith(("src/", "tests/cli/")) or len(found) <= len(OF_THE_REPOSITORY) + 2


def test_it_ends_quietly_where_nobody_reads_more() -> None:
    command = [sys.executable, script.__file__, "docs/README.md"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.close()
        _, said = started.communicate()
    counted = f"{len(OF_THE_REPOSITORY)} files; farther away: none\n".encode()
    assert said in (b"", counted)  # as stdout is flushed at each line or at the end


def test_imports_are_found_wherever_they_stand() -> None:
    code = "import a.b\ndef f():\n    from ..c import d\n    from . import e\n"
    assert set(script.imported("p.q.r", False, code)) == {"a.b", "p.c", "p.c.d", "p.q", "p.q.e"}
    assert set(script.imported("p.q", True, "from .x import y\nfrom ..z import w")) == {
        "p.q.x",
        "p.q.x.y",
        "p.z",
        "p.z.w",
    }
