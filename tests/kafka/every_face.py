"""A program that fails in many ways on one Spark session, and prints what each face of each failure shows.

It reads from stdin what fails it: clients of Kafka, by name, and the settings of its session.
"""

from __future__ import annotations

import io
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout

import lithify
from lithify.cli.main import run
from lithify.spark.session.start import session_factory
from lithify.spark_source import register
from lithify.waits import sql

sql.PATIENCE_S = 0.01


def faces_of(fails: Callable[[], object]) -> Iterator[tuple[str, str]]:
    try:
        reports = fails()
    except Exception as error:
        yield "class", type(error).__name__
        yield "str", str(error)
        yield "repr", repr(error)
        yield "traceback", "".join(traceback.format_exception(error))
        for number, one in enumerate(chain(error)):
            yield f"cause {number}", f"{one!r} {one} {vars(one)}"
    else:  # of topics, each of which may have failed
        assert all(report.error for report in reports)
        yield "reports", f"{reports!r} {[report.to_json() for report in reports]}"
        yield "reports in a notebook", reports._repr_html_()


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def shown_by(*arguments: str) -> str:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with redirect_stdout(out), redirect_stderr(err):
        code = run(arguments)
    out.flush(), err.flush()
    return f"{code} {out.buffer.getvalue().decode()} {err.buffer.getvalue().decode()}"


def main() -> None:
    given = json.loads(sys.stdin.readline())
    session = session_factory(None, given["session"])()
    session.sparkContext.setLogLevel("INFO")
    register(session, catalog="prod")
    lake = lithify.open(catalog="prod")
    orders = lake.create_topic("orders", 1)
    for _ in range(2):
        orders.append([lithify.Record(b"k", b"v")] * 3)
    print("REFUSE", flush=True)  # from now on segments cannot be read
    sys.stdin.readline()

    def reads(**options: str) -> Callable[[], object]:
        return lambda: session.read.format("lithify").options(subscribe="orders", **options).load().count()

    def ingests(name: str) -> Callable[[], object]:
        return lambda: lake.ingest(given["kafka"][name], ["t"], spark=session)

    jobs = {
        "compact": orders.compact,
        "verify": orders.verify,
        "read": lambda: list(orders.reader()),
        "Spark's read": reads(),
        "Spark's read of a catalog that refuses": reads(catalog="refusing"),
        "a catalog that is gone": lambda: lithify.open(catalog="gone").topics(),
        "a catalog that refuses": lambda: lithify.open(catalog="refusing").topics(),
        **{f"ingest, {name}": ingests(name) for name in given["kafka"]},
    }
    shown = {f"{name}: {face}": text for name, fails in jobs.items() for face, text in faces_of(fails)}
    verbs = [
        ("compact", "orders", "--catalog", "prod"),
        ("verify", "orders", "--catalog", "prod"),
        ("table", "orders", "--catalog", "prod"),
        ("doctor", "--catalog", "refusing"),
        ("topic", "list", "--catalog", "gone"),
        ("kafka", "ingest", "--catalog", "prod", "--kafka-conf-file", given["file"], "--topic", "t"),
    ]
    for verb in verbs:
        for form in ("--json", "--debug"):
            shown[" ".join((*verb, form))] = shown_by(*verb, form)
    shown["notebook"] = lithify.open(catalog="refusing")._repr_html_() + lithify.open(catalog="gone")._repr_html_()
    shown["status"] = shown_by("status", "--catalog", "prod") + str(orders.status())
    print(json.dumps(shown), flush=True)
    session.stop()


if __name__ == "__main__":
    main()
