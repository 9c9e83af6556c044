"""The benchmarks' own arithmetic: ratios of pairs, shapes of logs, what a tree of processes takes, the page."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks_page import WAYS as PAGE_WAYS
from benchmarks_page import costs, page, picture
from cases import BASE, Log, cases
from figures import summaries
from keyed_segments import Shape, keyed_segments
from process_tree import SAMPLE_SECONDS, measured
from run import in_place
from turns import WayEndedError, in_turns
from ways import WAYS

SMALL = Shape(4000, 800, 2, 20, 0.25)


def a_row(way: str, turn: int, seconds: float, **more: object) -> dict[str, object]:
    row = {"case": BASE, "way": way, "turn": turn, "seconds": seconds, "cpu_s": 2 * seconds, "others": 0.125}
    return {**row, "read_bytes": 5 * 10**6, "written_bytes": 10**5, "peak_bytes": {"driver": 10**8 + turn}, **more}


ROWS = [
    *(
        a_row("lithify", turn, seconds, shuffled_bytes=0, files_bytes=7 * 10**6)
        for turn, seconds in enumerate((1.0, 4.0, 9.0))
    ),
    *(a_row("duckdb", turn, seconds) for turn, seconds in enumerate((2.0, 2.0, 3.0))),
]
MACHINE = dict.fromkeys(("processor", "cores", "memory_gib", "python", "duckdb", "spark"), "?")
RESULT = {
    **{"command": "just bench", "date": "2026-01-02", "machine": MACHINE, "left_out": {"polars": "it is not here"}},
    **{"cases": [{"name": BASE, "text": "of some shape", "records": 4000}], "rows": ROWS},
}


def test_a_ratio_is_the_median_of_those_of_the_pairs_not_of_the_medians():
    ours, theirs = summaries(ROWS)
    assert (ours.way, ours.turns, ours.medians["seconds"], ours.ratios["seconds"]) == ("lithify", 3, 4.0, 1.0)
    assert (theirs.medians["seconds"], theirs.ratios["seconds"], theirs.ratios["cpu_s"]) == (2.0, 2.0, 2.0)
    assert theirs.peak_bytes == {"driver": 10**8 + 2}
    assert "turn" not in theirs.medians
    (alone,) = summaries([row for row in ROWS if row["way"] == "duckdb"])
    assert alone.ratios == {}


def test_the_page_has_each_way_and_says_what_was_left_out():
    text = page(RESULT)
    assert "| duckdb | 3 | 2.00 s | 4.00 s | 2.00 | 2.00 | 5 MB | 0.1 MB |  |  | driver 100 MB |" in text
    assert "| lithify | 3 | 4.00 s | 8.00 s |  |  | 5 MB | 0.1 MB | 7 MB | 0.0 MB | driver 100 MB |" in text
    assert "Left out: polars, since it is not here." in text
    assert "12% (at most 12%) of the cores" in text
    assert "The machine was busy" in text
    idle = {**RESULT, "rows": [{**row, "others": 0.01} for row in ROWS]}
    assert "The machine was busy" not in page(idle)
    assert text.index("| lithify |") < text.index("| duckdb |")
    assert picture(RESULT).count("<rect") == 1 + 2 * 2


def test_a_case_that_is_measured_again_replaces_its_own_rows_and_says_where():
    zipf = {"name": "zipf", "text": "as it was", "records": 4000}
    before = {**RESULT, "cases": [*RESULT["cases"], zipf], "rows": [*ROWS, {**ROWS[0], "case": "zipf"}]}
    anew = {**ROWS[1], "case": "zipf", "seconds": 7.0}
    machine = {**MACHINE, "processor": "another", "cores": 3}
    again = {**RESULT, "command": "just bench --case zipf", "machine": machine, "cases": [zipf], "rows": [anew]}
    found = in_place(before, again)
    assert found["rows"] == [*ROWS, anew]
    assert (found["command"], found["machine"]) == ("just bench", MACHINE)
    assert page(found).count("Measured apart") == 1
    assert "as it was.\n\nMeasured apart: `just bench --case zipf`, 2026-01-02, another, 3 cores.\n" in page(found)
    assert in_place(None, again) == again


def test_the_table_of_costs_has_ways_side_by_side():
    head, aligned, row = costs(RESULT).split("\n")
    assert head.startswith("| ?, ? cores | Lithify, warm | Lithify, cold | DuckDB |")
    assert aligned.startswith("| --- | ---: |")
    assert row == "| first round, 4,000 records | 4 s |  | 2 s |  |  |  |  |"


class Told:
    """A process of a way that has kept given records."""

    id = os.getpid()

    def __init__(self, left: str) -> None:
        self.left, self.told = left, []

    def ask(self, **told: str) -> dict[str, object]:
        self.told.append(told["do"])
        if told["do"] == "prepare":
            Path(told["out"]).mkdir()
        return {"digest": self.left} if told["do"] == "kept" else {"seconds": 1.0}


def test_the_first_of_a_turn_alternates_and_the_first_turn_does_not_count(tmp_path):
    ways = {"lithify": Told("a"), "duckdb": Told("a")}
    rows = list(in_turns(cases(20_000)[0], Log((), ()), ways, range(4, 6), tmp_path))
    assert [(row["turn"], row["way"]) for row in rows] == [
        *((4, "duckdb"), (4, "lithify")),
        *((5, "lithify"), (5, "duckdb")),
    ]
    assert ways["duckdb"].told == ["prepare", "run", "prepare", "run", "kept", "prepare", "run"]
    assert list(tmp_path.iterdir()) == []


def test_slow_ways_get_warm_on_the_first_new_segment(tmp_path):
    logs = {"duckdb": list[Log](), "kafka": list[Log]()}

    class Noted(Told):
        def ask(self, **told):
            if told["do"] == "prepare":
                name = Path(told["out"]).name.split("-")[0]
                logs[name].append(pickle.loads(b64decode(told["log"])))
            return super().ask(**told)

    case = cases(4000)[0]
    whole = case.log(tmp_path / "logs")
    assert len(whole.dirty) > 1
    list(in_turns(case, whole, {"duckdb": Noted("a"), "kafka": Noted("a")}, range(1), tmp_path))
    assert logs == {"duckdb": [whole, whole], "kafka": [Log((), whole.dirty[:1]), whole]}


def test_ways_that_keep_different_records_are_not_compared(tmp_path):
    ways = {"lithify": Told("a"), "duckdb": Told("b")}
    with pytest.raises(SystemExit, match="base: the ways do not keep the same records"):
        list(in_turns(cases(20_000)[0], Log((), ()), ways, range(1), tmp_path))


class Ended(Told):
    """One whose process ends in its third run."""

    def ask(self, **told):
        if told["do"] == "run" and self.told.count("run") == 2:
            raise WayEndedError("its process ended with 1")
        return super().ask(**told)


def test_a_way_whose_process_ends_leaves_the_others_their_rows(tmp_path, capsys):
    ways = {"lithify": Told("a"), "duckdb": Ended("a")}
    rows = list(in_turns(cases(20_000)[0], Log((), ()), ways, range(3), tmp_path))
    assert [(row["turn"], row["way"]) for row in rows] == [
        *((0, "duckdb"), (0, "lithify")),
        *((1, "lithify"), (2, "lithify")),
    ]
    assert list(ways) == ["lithify"]
    assert "duckdb is left out from base on: its process ended with 1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_every_way_is_on_the_page():
    assert PAGE_WAYS.keys() == WAYS.keys()


@pytest.mark.parametrize("more", [{"chosen": "zipf"}, {"chosen": "time"}, {"written": "uuid"}, {"written": "long"}])
def test_logs_of_each_shape_have_their_records(tmp_path, more):
    shape = replace(SMALL, **more)
    segments = keyed_segments(tmp_path, shape)
    read = pq.read_table([segment.path for segment in segments], partitioning=None).to_pydict()
    assert read["offset"] == list(range(4000))
    assert 1 < len(set(read["key"])) <= shape.keys
    assert {len(key) for key in read["key"]} == {{"uuid": 36, "long": 100}.get(shape.written, 16)}
    assert 800 < sum(value is None for value in read["value"]) < 1200
    assert keyed_segments(tmp_path, shape) == segments, "they are made once"


def test_each_key_of_a_log_of_distinct_keys_comes_once_however_it_is_written(tmp_path):
    for number, written in enumerate(("digits", "uuid", "long")):
        folder = tmp_path / str(number)
        folder.mkdir()
        segments = keyed_segments(folder, replace(SMALL, keys=4000, distinct=True, written=written))
        keys = (
            pq.read_table([segment.path for segment in segments], columns=["key"], partitioning=None)
            .column("key")
            .to_pylist()
        )
        assert len(set(keys)) == 4000


def test_new_records_continue_where_the_compacted_part_ends(tmp_path):
    for case in cases(20_000):
        log = case.log(tmp_path)
        assert log.segments[0].base_offset == 0
        assert all(a.end_offset == b.base_offset for a, b in zip(log.segments, log.segments[1:], strict=False))
        assert (case.clean is None) == (log.clean == ())
    assert len({case.name for case in cases(20_000)}) == len(cases(20_000))


def test_a_way_that_needs_what_is_not_installed_says_so():
    lacking = replace(WAYS["duckdb"], needs=("no_such_module", "duckdb", "sh", "no_such_program"))
    assert lacking.missing() == "no_such_module and no_such_program is not installed"
    assert WAYS["duckdb"].missing() is None
    whole, growing = cases(20_000)[0], cases(20_000)[-1]
    assert [name for name, way in WAYS.items() if not way.fits(whole)] == ["join"]
    assert [name for name, way in WAYS.items() if not way.fits(growing)] == ["kafka", "pulsar"]


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="reads /proc")
def test_what_a_tree_takes_is_that_of_all_its_processes():
    works = "import hashlib; d = bytes(2**20); [hashlib.sha256(d) for _ in range(400)]"
    child = [sys.executable, "-c", f"{works}; open('/dev/null', 'wb').write(d)"]
    program = f"import subprocess; input(); subprocess.run({child!r}); print('', flush=True); input()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, text=True) as parent:
        with measured(parent.pid) as used:
            print("", file=parent.stdin, flush=True)
            parent.stdout.readline()
        parent.communicate("\n")
    assert used.cpu_s > 0.05
    assert used.written_bytes >= 2**20
    assert used.peak_bytes["driver"] > 2**20
    assert 0 <= used.others <= 1
    with measured(os.getpid()) as idle:
        pass
    assert idle.cpu_s < used.cpu_s


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="reads /proc")
def test_what_a_process_took_counts_though_nobody_waits_for_its_end():
    """As that of Spark's Python workers, whose daemon lets the system forget them."""
    works = "d = bytes(2**20); open('/dev/null', 'wb').write(d); print('', flush=True); input()"
    daemon = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
input()
child = subprocess.Popen([sys.executable, "-c", {works!r}])
child.wait()
print("", flush=True)
input()
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", daemon], stdin=pipe, stdout=pipe, text=True) as parent:
        with measured(parent.pid) as used:
            print("", file=parent.stdin, flush=True)
            parent.stdout.readline()
            time.sleep(3 * SAMPLE_SECONDS)
            print("", file=parent.stdin, flush=True)
            parent.stdout.readline()
        parent.communicate("\n")
    assert used.written_bytes >= 2**20
