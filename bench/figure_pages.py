"""Writes everything that shows measured figures, from docs/figures.json; `just docs` calls it, and so do benchmarks.

    docs/understand/benchmarks.md and its picture     from `just bench`
    docs/understand/measurements.md                   from the other programs
    <!-- figures: NAME -->...<!-- / -->               on any page: what `MARKED` makes of them

Markdown does not show comments. A mark within a paragraph never begins a line. A test compares all pages with what this
would write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import benchmarks_page
import measurements_page
import scale_tables
from figure_tables import by_columns, filled
from published import BENCH, DOCS, MARK, ROOT, Figures, of_program, published, where

Render = Callable[[Figures], str]


def _table(program: str, columns: Mapping[str, str], has: str) -> Render:
    """A table of the rows that have a name, sorted by it, and where they were measured."""

    def render(figures: Figures) -> str:
        measured = [one for one in of_program(figures, program).values() if any(has in row for row in one["rows"])]
        rows = sorted((row for one in measured for row in one["rows"] if has in row), key=lambda row: row[has])
        places = "; ".join(dict.fromkeys(map(where, measured)))
        return f"\n\n{by_columns(rows, columns)}\n\nMeasured on {places}.\n\n"

    return render


def _text(program: str, text: str, **such: object) -> Render:
    """A format with the figures of the last row that has them and such values."""

    def render(figures: Figures) -> str:
        rows = [row for one in of_program(figures, program).values() for row in one["rows"]]
        return [shown for row in rows if such.items() <= row.items() if (shown := filled(text, row))][-1]

    return render


MARKED: Mapping[str, Render] = {
    "cost": lambda figures: f"\n\n{benchmarks_page.costs(figures[BENCH])}\n\n",
    "segments": _table(
        "many_segments.py",
        {
            "segments": "{segments}",
            "size": "{size_tb} TB",
            "manifests": "{manifests_mb} MB",
            "plan, CPU": "{plan_cpu_s} s",
            "`status`, CPU": "{status_cpu_s} s",
            "peak memory": "{peak_mib} MiB",
        },
        "segments",
    ),
    "partitions": _table(
        "append_latency.py",
        {
            "partitions": "{partitions}",
            "metadata of a commit": "{metadata_kb} KB",
            "CPU": "{cpu_ms} ms",
            "ratio to one partition, CPU": "{cpu_ratio}",
            "ratio, time": "{ratio}",
        },
        "partitions",
    ),
    "memory of a round": _table(
        "key_ranges.py",
        {
            "records": "{records}",
            "keys": "{keys}",
            "task memory": "{task_memory}",
            "worker": "{worker_mib} MiB",
            "Spark's JVM": "{jvm_mib} MiB",
            "driver's Python": "{driver_mib} MiB",
        },
        "task_memory",
    ),
    "keys of a range": lambda _: f"\n\n{scale_tables.keys_of_a_range()}\n\n",
    "ranges by slots": lambda _: f"\n\n{scale_tables.ranges_by_slots()}\n\n",
    "get by keys": _text("get.py", "{there_cpu_ms} ms", index=False, keys=100_000_000),
    "get by index": _text("get.py", "{there_cpu_ms} ms", index=True, keys=100_000_000),
    "check by tokens": _text("idle_look.py", "{took_s} s", check="again", topics=10_000),
    "check of each topic": _text("idle_look.py", "{took_s} s", check="without change tokens", topics=10_000),
}
"""What stands between marks, by name."""


def current(page: str, figures: Figures) -> str:
    """A page with what belongs between its marks. Raises `KeyError` for a name that `MARKED` does not have."""
    return MARK.sub(lambda found: found[1] + MARKED[found[2]](figures) + found[4], page)


def marked_pages() -> list[Path]:
    """The pages that have marks."""
    pages = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in pages if MARK.search(page.read_text("utf-8"))]


def generated(figures: Figures) -> dict[str, str]:
    """Whole files, by their place below a folder like `docs`."""
    return {**benchmarks_page.files(figures[BENCH]), **measurements_page.files(figures)}


def write(folder: Path = DOCS) -> None:
    """All of it, from the figures of a folder like `docs`; pages with marks only in `docs` itself."""
    figures = published(folder)
    for name, text in generated(figures).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    for page in marked_pages() if folder == DOCS else []:
        page.write_text(current(page.read_text("utf-8"), figures), "utf-8")


if __name__ == "__main__":
    write()
