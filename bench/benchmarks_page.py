"""docs/understand/benchmarks.md, its picture and the README's table of costs, from the figures of `just bench`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from statistics import median
from typing import Any

from figure_tables import table
from figures import OURS, Summary, summaries

PAGE, PICTURE = "understand/benchmarks.md", "images/benchmarks.svg"

WAYS = {
    "lithify": "a round of Lithify on a session that has run rounds before, commit included",
    "lithify-cold": "the command `lithify compact`, from its start to its end",
    "one-worker": "a round of Lithify, warm, on a standalone cluster of Spark with one worker of one core",
    "two-workers": "the same with two workers of one core each, on the same machine",
    "duckdb": "by hand in DuckDB, on all cores",
    "polars": "by hand in Polars, on all cores",
    "row_number": "a Spark job with `row_number` over whole records, warm",
    "join": "a Spark job that joins the new records to a table of the latest ones and writes the whole table again, as "
    "a copy-on-write `MERGE INTO` may do it; warm",
    "kafka": "Kafka's own cleaner, with one thread, on a topic with the same records; a broker that has cleaned before",
    "pulsar": "Pulsar's own compactor, on a topic with the same records in batches; it drops deletes at once",
    "floor": "a lower bound: reads the keys once and copies the known result, by Arrow in one process per core",
}
IN_README = {
    "lithify": "Lithify, warm",
    "lithify-cold": "Lithify, cold",
    "duckdb": "DuckDB",
    "row_number": "Spark, `row_number`",
    "join": "Spark, join and rewrite",
    "kafka": "Kafka's cleaner",
    "pulsar": "Pulsar's compactor",
}
"""Columns of the README's table."""
ROUNDS = {
    "base": "first round, {:,} records",
    "1%-new": "next round, 1 % new, {:,} in all",
    "0.1%-new": "next round, 0.1 % new, {:,} in all",
}
"""Rows of it, by case, with the number of records."""

BAR, LEFT, TOP, WIDTH = 22, 150, 56, 640
INK, FAINT, WALL, CPU = "#1f2937", "#6b7280", "#1d4ed8", "#93c5fd"


def page(result: Mapping[str, Any]) -> str:
    """The page, as Markdown."""
    found, machine = _summaries(result), result["machine"]
    blocks = [
        "# Benchmarks",
        f"`{result['command']}` wrote this page on {result['date']}: {machine['processor']}, "
        f"{machine['cores']} cores, {machine['memory_gib']} GiB; Python {machine['python']}, "
        f"DuckDB {machine['duckdb']}, Spark {machine['spark']}. Other programs kept {_others(result['rows'])} of the "
        "cores busy meanwhile. [bench](../../bench/README.md) describes how to run and extend it.",
        *([_BUSY] if median(row["others"] for row in result["rows"]) > MOST_OTHERS else []),
        "Each way retains the last record of each key of the same files. The ways run in turns, and the records that "
        "they retain are compared. Times are medians of the turns. A ratio is Lithify's time or CPU divided by the "
        "other's, as the median of pairs. Below 1, Lithify takes less.",
        _list({way: WAYS[way] for way in dict.fromkeys(one.way for one in found)}),
        *(f"Left out: {name}, since {why}." for name, why in result["left_out"].items()),
        "![Time of each way on the first log](../images/benchmarks.svg)",
        *(block for case in result["cases"] for block in _of_case(case, found)),
    ]
    return "\n\n".join(blocks) + "\n"


def picture(result: Mapping[str, Any]) -> str:
    """Bars of the first case: time of the clock over processor time, of each way, as SVG."""
    first = result["cases"][0]
    ways = [one for one in _summaries(result) if one.case == first["name"]]
    longest = max((max(one.medians["seconds"], one.medians["cpu_s"]) for one in ways), default=1.0)
    title = f"{first['records'] / 1e6:g} M records: {first['text']}"
    height = TOP + len(ways) * 2.6 * BAR
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 110}" height="{height:.0f}" '
        f'font-family="sans-serif" font-size="14" fill="{INK}">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="20" y="26" font-size="16">{escape(title)}</text>',
    ]
    for number, one in enumerate(ways):
        top = TOP + number * 2.6 * BAR
        lines.append(f'<text x="{LEFT - 10}" y="{top + BAR + 4:.0f}" text-anchor="end">{escape(one.way)}</text>')
        for row, (name, colour, unit) in enumerate((("seconds", WALL, "s"), ("cpu_s", CPU, "s of processors"))):
            width, y = one.medians[name] / longest * WIDTH, top + row * BAR
            lines.append(f'<rect x="{LEFT}" y="{y:.0f}" width="{width:.1f}" height="{BAR - 3}" fill="{colour}"/>')
            text = f"{one.medians[name]:.2f} {unit}"
            inside = width > WIDTH - 60
            x, anchor = (LEFT + width - 6, "end") if inside else (LEFT + width + 6, "start")
            ink = "white" if inside and row == 0 else INK if inside else FAINT
            lines.append(f'<text x="{x:.1f}" y="{y + 15:.0f}" text-anchor="{anchor}" fill="{ink}">{text}</text>')
    return "\n".join([*lines, "</svg>"]) + "\n"


def costs(result: Mapping[str, Any]) -> str:
    """The README's table: of each way and case the median, in seconds of the clock."""
    seconds = {(one.case, one.way): one.medians["seconds"] for one in _summaries(result)}
    machine = result["machine"]
    rows = [
        [ROUNDS[case["name"]].format(case["records"])]
        + [_rounded(seconds[case["name"], way]) if (case["name"], way) in seconds else "" for way in IN_README]
        for case in result["cases"]
        if case["name"] in ROUNDS
    ]
    return table([f"{machine['processor']}, {machine['cores']} cores", *IN_README.values()], rows)


def _rounded(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def files(result: Mapping[str, Any]) -> dict[str, str]:
    """The page and its picture, by their place below `docs`."""
    return {PAGE: page(result), PICTURE: picture(result)}


_BUSY = (
    "**The machine was busy with other work, so neither times nor processor times are reliable here. Run `just bench "
    "full` on an idle machine.**"
)
MOST_OTHERS = 0.1
"""The share of the cores, as a median, that other programs may take."""


def _summaries(result: Mapping[str, Any]) -> list[Summary]:
    """In the order of `WAYS`."""
    return sorted(summaries(result["rows"]), key=lambda one: list(WAYS).index(one.way))


def _of_case(case: Mapping[str, Any], found: Sequence[Summary]) -> Iterator[str]:
    mine = [one for one in found if one.case == case["name"]]
    if mine:
        yield f"## {case['name']}"
        yield f"{case['records']:,} records" + (f": {case['text']}." if case["text"] else ".")
        if "apart" in case:
            yield f"Measured apart: {case['apart']}."
        head = (
            "way",
            "turns",
            "time",
            "CPU",
            "ratio",
            "of CPU",
            "read",
            "written",
            "new files",
            "shuffled",
            "largest processes",
        )
        yield table(head, [_cells(one) for one in mine])


def _cells(one: Summary) -> list[str]:
    ratios = [
        f"{one.ratios[name]:.2f}" if name in one.ratios and one.way != OURS else "" for name in ("seconds", "cpu_s")
    ]
    peaks = ", ".join(f"{role} {_bytes(peak)}" for role, peak in sorted(one.peak_bytes.items()))
    moved = [_bytes(one.medians[name]) if name in one.medians else "" for name in _MOVED]
    return [
        one.way,
        str(one.turns),
        f"{one.medians['seconds']:.2f} s",
        f"{one.medians['cpu_s']:.2f} s",
        *ratios,
        *moved,
        peaks,
    ]


_MOVED = ("read_bytes", "written_bytes", "files_bytes", "shuffled_bytes")


def _bytes(count: float) -> str:
    return f"{count / 1e6:,.0f} MB" if count >= 1e6 else f"{count / 1e6:.1f} MB"


def _others(rows: Sequence[Mapping[str, Any]]) -> str:
    shares = [row["others"] for row in rows]
    return f"{median(shares):.0%} (at most {max(shares):.0%})"


def _list(texts: Mapping[str, str]) -> str:
    return "\n".join(f"- `{name}`: {text}" for name, text in texts.items())
