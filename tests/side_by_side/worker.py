"""The program of one checkout, which does what it is told on stdin: a JSON object a line, answered by one.

    {"now_ms": 5, "step": 3, "folder": "/tmp/w", "arguments": ["status", "orders"], "stdin": "", "seconds": 20}
    {"code": 0, "out": "...", "err": "..."}

Which checkout it is, says PYTHONPATH: this file imports nothing that stands beside it. Time and ids come from the
command, so that two checkouts that do the same print the same. Rounds run on the kernels without Spark, but with
`--spark` on Spark.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import lithify.api.topic
from lithify.cli.main import run
from support.engines.kernel import KernelEngine

SPARK = "--spark" in sys.argv


class Told:
    """The clock and the ids of a command."""

    now_ms = 0
    ids = count()

    @classmethod
    def begin(cls, command: dict[str, Any]) -> None:
        cls.now_ms = command["now_ms"]
        cls.ids = count(command["step"] * 1000)


def plain_rounds(warehouse: Any, *_: object) -> KernelEngine:
    return KernelEngine(ranges=2)


def interrupted(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def outcome(command: dict[str, Any]) -> dict[str, Any]:
    """Runs one command line in its folder, until it ends or its seconds are over."""
    Path(command["folder"]).mkdir(parents=True, exist_ok=True)
    os.chdir(command["folder"])
    Told.begin(command)
    before = sys.stdin, sys.stdout, sys.stderr
    streams = [
        io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8", newline="\n") for text in (command["stdin"], "", "")
    ]
    sys.stdin, sys.stdout, sys.stderr = streams
    signal.alarm(command["seconds"])
    try:
        code = run(command["arguments"])
    except BaseException as error:  # what a program must not let through is an answer too
        code = repr(error)
    finally:
        signal.alarm(0)
        sys.stdin, sys.stdout, sys.stderr = before
    out, err = (stream.detach().getvalue().decode() for stream in streams[1:] if not stream.flush())
    return {"code": code, "out": out, "err": err}


def streamed(command: dict[str, Any]) -> dict[str, Any]:
    """`["@stream", TOPIC]`: what a Spark stream reads that continues from its checkpoint in the folder."""
    from pyspark.sql import SparkSession

    from lithify.spark_source import register

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    folder, topic = command["folder"], command["arguments"][1]
    register(spark, warehouse=f"{folder}/lithify-warehouse")
    rows = spark.readStream.format("lithify").option("subscribe", topic).load()
    writing = rows.writeStream.format("json").option("checkpointLocation", f"{folder}/checkpoint")
    writing.trigger(availableNow=True).start(f"{folder}/rows").awaitTermination()
    spark.stop()
    lines = [line for file in Path(folder, "rows").glob("*.json") for line in file.read_text("utf-8").splitlines()]
    return {"code": 0, "out": "\n".join(sorted(lines)), "err": ""}


def main() -> None:
    clock = sys.modules[lithify.api.topic.spark_engine.__module__].SystemClock  # wherever the commit has it
    clock.now_ms = lambda _clock: Told.now_ms
    clock.new_id = lambda _clock: f"{next(Told.ids):012x}"
    if not SPARK:
        lithify.api.topic.spark_engine = plain_rounds  # type: ignore[assignment]
    signal.signal(signal.SIGALRM, interrupted)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library writes to stdout itself is no answer
    for line in sys.stdin:
        command = json.loads(line)
        done = streamed(command) if command["arguments"][0] == "@stream" else outcome(command)
        print(json.dumps(done), file=answers, flush=True)


if __name__ == "__main__":
    main()
