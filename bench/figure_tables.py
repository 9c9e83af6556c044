"""Tables of Markdown from rows of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

UNITS = {
    "_mb_per_s": "MB/s",
    "_per_cpu_s": "per CPU second",
    "_per_s": "per second",
    **{f"_{unit.lower()}": unit for unit in ("ms", "s", "KB", "MB", "GB", "TB", "MiB")},
}
"""By the end of a name. An end of several words comes first."""
WORDS = {"cpu": "CPU", "jvm": "JVM", "duckdb": "DuckDB", "kafka": "Kafka", "pulsar": "Pulsar", "lithify": "Lithify"}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, in which columns of numbers are aligned to the right, except for the first column."""
    aligned = ["---", *("---:" if all(map(_is_number, cells)) else "---" for cells in [*zip(*rows, strict=True)][1:])]
    lines = [head, aligned if rows else ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _is_number(cell: str) -> bool:
    return not cell or cell[0].isdigit()


def of_rows(rows: Sequence[Row]) -> str:
    """All of the rows: a column for each name, in the order in which they come first."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return table([heading(name) for name in names], [[shown(row.get(name)) for name in names] for row in rows])


def by_columns(rows: Sequence[Row], columns: Mapping[str, str]) -> str:
    """Some of each row: columns by heading, as formats such as `{plan_cpu_s} s`; empty where a row lacks a name."""
    return table(list(columns), [[filled(text, row) for text in columns.values()] for row in rows])


def filled(text: str, row: Row) -> str:
    """A format with the figures of a row, or nothing if it lacks one."""
    try:
        return text.format_map({name: shown(value) for name, value in row.items()})
    except KeyError:
        return ""


def heading(name: str) -> str:
    """The words of a name, and its unit: `plan_cpu_s` is `plan CPU, s`."""
    end = next((end for end in UNITS if name.endswith(end)), "")
    words = " ".join(WORDS.get(word, word) for word in name.removesuffix(end).split("_"))
    return f"{words}, {UNITS[end]}" if end else words


def shown(value: Any) -> str:
    """A figure for people: three digits at least where there are as many."""
    if isinstance(value, list):
        return "; ".join(map(shown, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and abs(value) >= 100):
        return f"{value:,.0f}"
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)
