"""What a failing run prints can be pasted into tests/scenarios: every line of it is a command there."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, seed
from hypothesis import settings as profile
from hypothesis.stateful import run_state_machine_as_test

from scenarios.scenario import play
from support.checked.machine import RandomTopicMachine

RUNS = 40


class Listening(RandomTopicMachine):
    """Keeps what every run tells."""

    told: list[list[str]] = []  # noqa: RUF012 - one list for all runs is what is wanted

    def teardown(self) -> None:
        self.told.append(list(self.story.lines))
        super().teardown()


def test_a_run_is_written_as_a_scenario_that_plays() -> None:
    quiet = profile(
        max_examples=RUNS,
        stateful_step_count=20,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(seed(8)(Listening), settings=quiet)
    verbs = {line.split()[1] for lines in Listening.told for line in lines if line.startswith("> ")}
    assert {
        "append",
        "keep",
        "compact",
        "retain",
        "alter",
        "truncate",
        "delete-records",
        "meanwhile,",
        "expire",
    } <= verbs
    for lines in Listening.told:
        play("\n".join(lines))  # a verb it does not know, or cannot read, raises
