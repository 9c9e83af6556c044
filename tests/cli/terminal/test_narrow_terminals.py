"""What people see on a narrow terminal, in lists and in help: nothing is cut, and no word is taken apart."""

from __future__ import annotations

import re

import pytest

from lithify.cli.terminal.drawing import columns, line, results, room_of
from lithify.cli.verbs import SUBJECTS, lithify_group
from lithify.model.settings.secrets import keep
from lithify.reports.page import Page, Section, Table, result

HEADER = ("PARTITION", "START", "RECORDS", "WHY")
ROWS = [("0", "12", "1,000,000", "dirty ratio 1.00 > 0.5 by far"), ("1", "0", "3", "")]


@pytest.mark.parametrize("width", [30, 40, 60, 100])
def test_a_table_fits_or_is_folded_and_keeps_its_words(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    lines = columns(HEADER, ROWS, left=("WHY",))
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for row in ROWS:
        for cell in row:
            assert set(cell.split()) <= set(words)


def test_no_line_has_half_of_a_secret(monkeypatch):
    keep({"token": "Qz7one two three four five"})
    said = "Qz7one two three four five and password='Qz7 two three four five'"
    page = Page(
        "orders",
        table=Table(HEADER, ["0"], lambda log: (log, "1", "2", said), left=("WHY",), notes=lambda _: [said]),
        sections=[Section("of it", [("name", said)])],
        lines=[result(said)],
    )
    for width in (1, 20, 30, 40, 60, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        shown = "\n".join(map(line, results(page)))
        assert "***" in shown and not re.search("Qz7|three|five", shown), width


@pytest.mark.parametrize("word", ["日本語", "ｆｕｌｌ", "e\u0301a\u0308", "กำกำ", "👩"])
def test_columns_are_below_each_other_whatever_letters_they_have(word, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    header, *rows = columns(("NAME", "N", "WHY"), [("a", "1", "x"), (word, "2", f"{word} " * 20)], left=("NAME", "WHY"))
    where = header.index("WHY")
    for row in rows:
        assert room_of(row[: row.rindex("  ") + 2]) == where
        assert room_of(row) <= 40


def test_a_folded_row_names_its_values(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("NO_COLOR", "1")
    assert columns(HEADER, ROWS, left=("WHY",)) == [
        "PARTITION 0",
        "  START 12  RECORDS 1,000,000",
        "  WHY dirty ratio 1.00 > 0.5",
        "  by far",
        "PARTITION 1",
        "  START 0  RECORDS 3",
    ]


def test_lists_and_states_at_60_columns(lithify, monkeypatch):
    for name in ("t10", "t2", "a-topic-whose-name-has-some-length"):
        lithify("topic", "create", name, "--partitions", "2")
        lithify("produce", name, stdin='{"key":"a","value":"b"}\n')
    monkeypatch.setenv("COLUMNS", "60")
    for verb in (["topic", "list"], ["status"], ["status", "t2"], ["versions", "t2"], ["topic", "list", "--json"]):
        shown = lithify(*verb).out
        if "--json" not in verb:
            assert max(map(len, shown.splitlines()), default=0) <= 60
        if "list" in verb:
            assert shown.index("t2") < shown.index("t10")


def test_the_help_lists_every_verb_once_by_subject_with_its_whole_summary(lithify):
    shown = " ".join(lithify("--help").out.split())
    assert "..." not in shown.partition("First steps:")[2]
    listed = [name for names in SUBJECTS.values() for name in names]
    assert set(listed) == set(lithify_group.commands) and len(listed) == len(set(listed))
    for command in lithify_group.commands.values():
        summary = re.split(r"(?<=\.)\s", " ".join((command.help or "").split()))[0].removesuffix(".")
        assert summary in shown
