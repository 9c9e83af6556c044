"""How far a batch goes: shares of what waits, nothing starved, nothing beyond the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithify.spark_source.reading import limited

LOGS = st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 50), st.integers(0, 10**6)), max_size=5)


def test_every_log_gets_its_share():
    start = {"t": {0: 0, 1: 100, 2: 5}}
    assert limited(start, {"t": {0: 900, 1: 190, 2: 15}}, 100) == {"t": {0: 90, 1: 109, 2: 6}}
    assert limited(start, {"t": {0: 30, 1: 110, 2: 5}}, 100) == {"t": {0: 30, 1: 110, 2: 5}}


@given(LOGS, st.integers(1, 1000))
def test_it_goes_on_and_ends(logs, most):
    start = {"t": {p: at for p, (at, _) in logs.items()}}
    end = {"t": {p: at + more for p, (at, more) in logs.items()}}
    got = limited(start, end, most)
    taken = {p: got["t"][p] - start["t"][p] for p in logs}
    assert all((taken[p] > 0) == (more > 0) and taken[p] <= more for p, (_, more) in logs.items())
    assert sum(taken.values()) <= most + len(logs)
