"""A job that waits for executors that never come ends, and one whose executors come late does not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lithify.errors import EngineUnavailableError
from lithify.spark.session.executors import LOOKS_WITHOUT, Executors


def executors(master, counts):
    """As the driver counts them, itself among them."""
    found = iter(counts)
    status = SimpleNamespace(size=lambda: next(found))
    sc = SimpleNamespace(getExecutorMemoryStatus=lambda: status)
    return Executors(SimpleNamespace(master=master, _jsc=SimpleNamespace(sc=lambda: sc)))


@pytest.mark.parametrize("master", ["spark://host:7077", "local-cluster[1,1,1024]"])
def test_the_wait_for_executors_that_exit_at_once_ends(master):
    looked = executors(master, [1] * LOOKS_WITHOUT)
    for _ in range(LOOKS_WITHOUT - 1):
        looked.look()
    with pytest.raises(EngineUnavailableError, match=r"no executor has registered.*for 300 s.*stderr.*nothing was"):
        looked.look()


def test_one_that_came_begins_the_count_anew():
    looked = executors("spark://host:7077", [*[1] * (LOOKS_WITHOUT - 1), 2, *[1] * (LOOKS_WITHOUT - 1)])
    for _ in range(2 * LOOKS_WITHOUT - 1):
        looked.look()


@pytest.mark.parametrize("master", ["local[*]", "yarn", "k8s://https://h:1"])
def test_elsewhere_nothing_is_asked(master):
    executors(master, []).look()
