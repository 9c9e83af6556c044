"""One way of `just bench` in a process of its own, which is told by lines of JSON what to do.

    parent:  {"do": "prepare", ...} ─►   {"do": "run"} ─►            {"do": "kept"} ─►
    here:                    ─► {}       ─► {"seconds": 1.2, ...}    ─► {"records": 9, "digest": "…"}

Only `run` is measured: by this process its time, by the parent what it and its children take meanwhile.
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import sys
import time
from base64 import b64decode
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from way import KEPT, Way
from ways import WAYS

_BECOME_SUBREAPER = 36
"""For `prctl`: what processes below leave behind becomes this one's, and counts as such until it ends."""


def digest(way: Way) -> dict[str, Any]:
    """How many values a way has kept, a digest that is the same for them in any order; and how many deletes."""
    records, tombstones, mixed = 0, 0, 0
    with duckdb.connect() as c:
        for table in way.kept():
            rows = pa.table([table.column(name) for name in KEPT], names=["o", "k", "v"])  # noqa: F841 - DuckDB finds it
            found = c.execute("SELECT count(*), bit_xor(hash(o, k, v)) FROM rows WHERE v IS NOT NULL").fetchone()
            assert found is not None
            records, mixed = records + found[0], mixed ^ (found[1] or 0)
            tombstones += table.num_rows - found[0]
    left = {"records": records, "digest": f"{mixed:016x}"}
    return {**left, "tombstones": tombstones} if way.keeps_tombstones else left


def main() -> None:
    ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    way = WAYS[sys.argv[1]].made()
    for line in sys.stdin:
        told = json.loads(line)
        answer: dict[str, Any] = {}
        if told["do"] == "prepare":
            way.prepare(pickle.loads(b64decode(told["log"])), Path(told["out"]))
        elif told["do"] == "run":
            begun = time.perf_counter()
            figures = way.run()
            answer = {"seconds": time.perf_counter() - begun, **figures}
        else:
            answer = digest(way)
        print(json.dumps(answer), file=answers, flush=True)
    way.close()


if __name__ == "__main__":
    main()
