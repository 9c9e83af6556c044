"""How Hypothesis works here: the same examples on every run, so that a red test is red for everyone.

`HYPOTHESIS_PROFILE=explore` looks for new ones instead, many more of them. `--examples` bounds how many.

And how the JVMs of Spark do that tests start: they live for seconds, so that what a JVM spends on
getting quick for hours (a second compiler, a collector with threads of its own) is never earned back.
Programs in processes of their own inherit it; a test that clears the environment has Spark as it is.

And how wide tables are: as without a terminal, though workers of pytest-xdist are given a width.

And that programs hear an interrupt: a shell starts what it runs in the background with SIGINT ignored,
which processes hand down. A test that leaves a handler of the product fails, as it would hide interrupts of later ones,
and the second of them would end all.

And that tests which share a session of Spark can have it on a cluster of our own: `--on-cluster`.

And that the secrets of one test hide nothing in the texts of the next.

And that garbage is looked for in what tests make alone, not in all that was imported and collected before: with so
much, Python looks through all of it seldom, and frames of PySpark stay, with what the JVM holds for them.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import HealthCheck, settings

from lithify.errors.redaction import KNOWN_SECRETS
from support.fewer_cases import bound_examples, first_cases
from support.processes.class_archive import spark_home, spark_options
from support.processes.programs import SHORT_LIVED
from support.servers.spark_cluster import a_cluster

settings.register_profile("steady", deadline=None, derandomize=True, database=None)
settings.register_profile(
    "explore", deadline=None, max_examples=2000, stateful_step_count=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(spark_options()))  # read by Spark's own scripts, which say nothing
os.environ.setdefault("SPARK_HOME", str(spark_home()))
os.environ.setdefault("SPARK_LAUNCHER_OPTS", " ".join(SHORT_LIVED))
os.environ.pop("COLUMNS", None)

signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--on-cluster", action="store_true", help="shared sessions of Spark are on a cluster")
    parser.addoption("--examples", type=int, help="tries properties and state machines with at most so many examples")
    parser.addoption("--first-cases", action="store_true", help="runs tests that have parameters with the first ones")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (at_most := config.getoption("--examples")) is not None:
        bound_examples(items, at_most)
    if config.getoption("--first-cases"):
        kept = first_cases(items)
        config.hook.pytest_deselected(items=[*{*items}.difference(kept)])
        items[:] = kept


@pytest.fixture(scope="session")
def on_cluster(request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
    """Settings that bring a session to a standalone cluster, if that was asked for; none otherwise."""
    if not request.config.getoption("--on-cluster"):
        yield {}
        return
    with a_cluster() as cluster:
        yield cluster.conf


@pytest.fixture(autouse=True)
def forgotten_secrets() -> Iterator[None]:
    yield
    KNOWN_SECRETS.clear()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    handler = signal.getsignal(signal.SIGINT)
    if getattr(handler, "__module__", "").startswith("lithify."):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pytest.fail(f"SIGINT is still handled by {handler}")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.collect()  # counts those that are left: Python looks through all of them once a quarter as many have come
