"""What benchmarks publish, and the pages that are made of it."""

from __future__ import annotations

import argparse
import re

import pytest

import figure_pages
import shown as shown_by_programs
from benchmarks_page import files as benchmark_files
from figure_tables import by_columns, heading, of_rows, shown
from measurements_page import ABOUT
from measurements_page import files as measurement_files
from published import BENCH, DOCS, MARK, ROOT, of_program, publish, published

ONE = {"date": "2026-01-02", "machine": {"processor": "P", "cores": 2}, "load": 3, "rows": [{"there_cpu_ms": 5.0}]}


def test_every_generated_page_is_that_of_the_published_figures():
    for name, text in figure_pages.generated(published()).items():
        assert (DOCS / name).read_text("utf-8") == text, f"run `just docs`: {name}"


@pytest.mark.parametrize("page", figure_pages.marked_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_between_marks_are_the_published_figures(page):
    text = page.read_text("utf-8")
    assert text == figure_pages.current(text, published()), "run `just docs`"
    assert text.count("<!-- figures:") == text.count("<!-- / -->") == len(MARK.findall(text))


@pytest.mark.parametrize("page", figure_pages.marked_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_mark_that_begins_a_line_is_alone_in_it(page):
    """Else Markdown takes all of the line for HTML."""
    lines = page.read_text("utf-8").splitlines()
    assert [line for line in lines if line.lstrip().startswith("<!--") and not line.endswith("-->")] == []
    assert [line for line in lines if line.lstrip().startswith("<!--") and line.count("-->") > 1] == []


def test_everything_that_pages_can_show_is_shown_and_has_figures():
    there = {name for page in figure_pages.marked_pages() for _, name, *_ in MARK.findall(page.read_text("utf-8"))}
    assert there == figure_pages.MARKED.keys()
    assert [name for name, render in figure_pages.MARKED.items() if not re.search(r"\d", render(published()))] == []


def test_every_program_that_publishes_is_described_and_published():
    programs = {file.name for file in (ROOT / "bench").glob("*.py") if "add_publish(parser)" in file.read_text("utf-8")}
    assert programs == ABOUT.keys()
    assert [program for program in programs if not of_program(published(), program)] == []
    assert {command.split(" ")[0] for command in published()} - {"just"} == programs


def test_a_command_replaces_its_own_figures_and_leaves_those_of_others(tmp_path):
    publish("get.py", ONE, tmp_path)
    publish("get.py --keys 5", {**ONE, "rows": [{"a": 1}, {"a": 2}]}, tmp_path)
    publish("get.py", {**ONE, "date": "2026-02-03"}, tmp_path)
    found = published(tmp_path)
    assert (found["get.py"]["date"], found["get.py --keys 5"]["rows"]) == ("2026-02-03", [{"a": 1}, {"a": 2}])
    assert list(of_program(found, "get.py")) == ["get.py", "get.py --keys 5"]
    assert of_program(found, "get") == {}
    assert published(tmp_path / "none") == {}


def test_with_another_folder_only_whole_files_are_written(tmp_path):
    publish(BENCH, published()[BENCH], tmp_path)
    before = {page: page.read_text("utf-8") for page in figure_pages.marked_pages()}
    figure_pages.write(tmp_path)
    made = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()}
    assert made == {"figures.json", *benchmark_files(published()[BENCH]), *measurement_files({})}
    assert {page: page.read_text("utf-8") for page in before} == before


def test_a_program_prints_its_rows_and_publishes_them_only_if_asked_and_without_an_error(monkeypatch, capsys):
    stored, wrote = [], []
    monkeypatch.setattr(shown_by_programs, "publish", lambda command, one: stored.append((command, one)))
    monkeypatch.setattr(shown_by_programs.figure_pages, "write", lambda: wrote.append(True))
    monkeypatch.setattr("sys.argv", ["bench/get.py", "--data", "/tmp/x", "--keys", "5", "--publish"])
    parser = argparse.ArgumentParser()
    shown_by_programs.add_publish(parser)
    with shown_by_programs.shown(parser.parse_args([])) as show:
        show(way="a", cpu_s=1.5)
    assert (capsys.readouterr().out, stored) == ('{"way": "a", "cpu_s": 1.5}\n', [])
    with pytest.raises(ZeroDivisionError), shown_by_programs.shown(parser.parse_args(["--publish"])) as show:
        show(cpu_s=1 / 0)
    assert stored == wrote == []
    with shown_by_programs.shown(parser.parse_args(["--publish"])) as show:
        show(cpu_s=1.5)
    ((command, one),) = stored
    assert (command, one["rows"], wrote) == ("get.py --keys 5", [{"cpu_s": 1.5}], [True])
    assert one.keys() == ONE.keys()


def test_a_column_has_the_unit_in_its_heading():
    assert [heading(name) for name in ("plan_cpu_s", "read_mb", "limit_mb_per_s", "records_per_cpu_s", "ratio")] == [
        "plan CPU, s",
        "read, MB",
        "limit, MB/s",
        "records, per CPU second",
        "ratio",
    ]
    assert [shown(value) for value in (0.1234, 12.0, 1234.5, 10**6, True, None, "x", [1, 2.5])] == [
        *("0.123", "12", "1,234", "1,000,000", "yes", "", "x", "1; 2.5"),
    ]
    assert of_rows([{"way": "a", "cpu_s": 1.0}, {"way": "b", "read_mb": 2}]).splitlines() == [
        "| way | CPU, s | read, MB |",
        "| --- | ---: | ---: |",
        "| a | 1 |  |",
        "| b |  | 2 |",
    ]
    assert by_columns([{"a": 1}], {"A": "{a} s", "B": "{b} s"}).endswith("| 1 s |  |")
