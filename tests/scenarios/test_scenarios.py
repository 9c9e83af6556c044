"""Every scenario prints what it printed when it was last reviewed.

The scenarios read like a manual of the contract, rule by rule; `scenario.py` has the commands.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.scenario import play

FOLDER = Path(__file__).parent
SCENARIOS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, update: bool) -> None:
    text = path.read_text("utf-8")
    played = play(text)
    if update:
        path.write_text(played, "utf-8")
    assert played.splitlines() == path.read_text("utf-8").splitlines()


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 20


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_is_named_by_its_rule(path: Path) -> None:
    assert path.read_text("utf-8").startswith(f"C{int(path.stem[1:3])}: ")


def test_a_changed_output_is_seen() -> None:
    """A golden test that accepts everything would be worth nothing."""
    text = SCENARIOS[0].read_text("utf-8")
    changed = text.replace("@", "@1", 1)
    assert changed != text
    assert play(changed) == text
