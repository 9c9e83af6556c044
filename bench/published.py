"""docs/figures.json: every measured figure that a page shows, by the command that measured it.

    {"just bench": {"date": ..., "machine": {...}, "rows": [...], ...},    see `run.py`
     "get.py --keys 100000000": {"date": ..., "machine": {...}, "load": 20, "rows": [{"index": true, ...}, ...]},
     ...}

A command that is run again replaces its own. `figure_pages.py` makes pages of the file.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
NAME = "figures.json"
BENCH = "just bench"

MARK = re.compile(r"(<!-- figures: ([\w -]+) -->)(.*?)(<!-- / -->)", re.DOTALL)
"""What stands on a page between marks: the mark before it with a name, and the mark after it."""

Measurement = Mapping[str, Any]
"""`date`, `machine`, `rows`, and what else was noted."""
Figures = Mapping[str, Measurement]


def published(folder: Path = DOCS) -> dict[str, Measurement]:
    """All measurements in a folder like `docs`, by command; none if it does not have the file."""
    file = folder / NAME
    found: dict[str, Measurement] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return found


def publish(command: str, measurement: Measurement, folder: Path = DOCS) -> None:
    """Replaces the measurement of a command. Each row is a line of the file."""
    figures = {**published(folder), command: measurement}
    folder.mkdir(parents=True, exist_ok=True)
    parts = (f"{json.dumps(name)}: {_as_text(figures[name])}" for name in sorted(figures))
    (folder / NAME).write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


def _as_text(measurement: Measurement) -> str:
    head = json.dumps({name: value for name, value in measurement.items() if name != "rows"})
    rows = ",\n".join(json.dumps(row) for row in measurement["rows"])
    return f'{head[:-1]}, "rows": [\n{rows}\n]}}'


def of_program(figures: Figures, program: str) -> dict[str, Measurement]:
    """What a program such as `get.py` measured, by command, with other arguments each."""
    return {command: found for command, found in figures.items() if command.split(" ")[0] == program}


def where(measurement: Measurement) -> str:
    """When and on what it was measured: `2026-11-28, AMD EPYC (Zen 5), 2 cores, load 7`."""
    machine, load = measurement["machine"], measurement.get("load")
    on = f"{measurement['date']}, {machine['processor']}, {machine['cores']} cores"
    return on if load is None else f"{on}, load {load}"


def machine() -> dict[str, Any]:
    """What figures are measured on."""
    info = Path("/proc/cpuinfo").read_text()
    fields = {name: re.search(rf"^{name}\s*: (.*)$", info, re.M) for name in ("model name", "cpu family", "model")}
    name, family, model = (found[1] if found else "0" for found in fields.values())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": f"{name} ({_generation(name, int(family), int(model))})",
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "python": platform.python_version(),
        **{name: version(package) for name, package in (("duckdb", "duckdb"), ("spark", "pyspark"))},
    }


def _generation(name: str, family: int, model: int) -> str:
    """Of AMD's processors, which virtual machines often name without it; else the numbers that tell it."""
    zen = {23: "Zen 2" if model >= 0x30 else "Zen", 25: "Zen 4" if model & 0xF0 in _ZEN_4 else "Zen 3", 26: "Zen 5"}
    return zen[family] if "AMD" in name and family in zen else f"family {family}, model {model}"


_ZEN_4 = (0x10, 0x60, 0x70, 0xA0)
"""Model numbers of family 25, but for the last digit."""
