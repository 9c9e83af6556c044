"""The long random test: any verbs in any order, crashes and jumping clocks, against the textbook.

For as many seconds of processor time as `LITHIFY_RANDOM_SECONDS` says, so that it does as much on a busy
machine, seed after seed from `LITHIFY_RANDOM_SEED` on. What fails is shrunk and printed as a scenario, with its
seed. `just random MINUTES` looks for new ones.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, seed
from hypothesis import settings as profile
from hypothesis.stateful import run_state_machine_as_test

from support.checked.machine import RandomTopicMachine

SECONDS = float(os.environ.get("LITHIFY_RANDOM_SECONDS", "12"))
FIRST_SEED = int(os.environ.get("LITHIFY_RANDOM_SEED", "0"))
SHRINKING_SECONDS = 900
VERBS = 12
"""So many verbs are done at least: the first runs of a seed are the smallest there are, whatever the seed."""


@pytest.mark.timeout(SECONDS + SHRINKING_SECONDS)
@pytest.mark.parametrize(("place", "examples"), [("memory", 100), ("iceberg", 8)])
def test_topics_do_what_the_contract_says(place: str, examples: int, capsys: pytest.CaptureFixture[str]) -> None:
    """C1 to C44, but for those on the work itself: in any order, whatever happens on the way."""
    until = time.process_time() + SECONDS
    runs, verbs = 0, Counter[str]()
    for number in count(FIRST_SEED):
        if time.process_time() >= until:
            break
        _run(place, number, examples, verbs)
        runs += examples
    assert len(verbs) >= VERBS, f"hardly anything was done: {verbs}"
    with capsys.disabled():
        print(f"\n{place}: {runs} runs, seeds {FIRST_SEED} to {number - 1}; {dict(verbs)}")


def _run(place: str, number: int, examples: int, verbs: Counter[str]) -> None:
    class Machine(RandomTopicMachine):
        place_name = place

        def teardown(self) -> None:
            verbs.update(line.split()[1] for line in self.story.lines if line.startswith("> "))
            super().teardown()

    how = profile(
        max_examples=examples,
        stateful_step_count=40,
        deadline=None,
        database=None,
        derandomize=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    try:
        run_state_machine_as_test(seed(number)(Machine), settings=how)
    except BaseException as error:
        error.add_note(f"LITHIFY_RANDOM_SEED={number} on {place} finds it again")
        raise
