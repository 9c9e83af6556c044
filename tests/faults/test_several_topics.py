"""Every port call of a run over several topics fails, in turn: a topic alone, and the others go on (C6, C31)."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.cases import STRIKES
from faults.history import TOPICS, prepared_again, several_topics
from lithify.errors import LithifyError
from lithify.model.names import TopicName
from lithify.ports.store import Warehouse
from lithify.service.round.run import Run, run_rounds
from lithify.service.round.topic_run import TopicResult
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import CrashError, FaultyEngine, Injector, Kind, faulty
from support.faults.struck import strikes
from support.faults.topics import MAKERS, picture
from support.topics.whole_logs import check_whole

OF_ALL_LOGS = ("open_round", "find_survivors", "rewrite")
"""Calls of the engine: it takes the logs of all topics at once."""


def a_run(warehouse: Warehouse, injector: Injector | None = None) -> dict[TopicName, TopicResult | LithifyError]:
    """A round of all logs of all topics."""
    engine = OracleEngine(warehouse.files)
    if injector is None:
        return run_rounds(Run(warehouse, engine), dict.fromkeys(TOPICS))
    return run_rounds(Run(faulty(warehouse, injector), FaultyEngine(engine, injector)), dict.fromkeys(TOPICS))


def got_through(result: TopicResult | LithifyError) -> bool:
    return isinstance(result, TopicResult) and not result.errors


# What crashes leave behind on disk is looked at for one topic at a time, which is quicker.
@pytest.mark.parametrize(
    ("store", "kind"),
    [strike for strike in STRIKES if strike != ("iceberg", Kind.CRASHES_AFTER)],
    ids=lambda value: getattr(value, "name", value).lower(),
)
def test_a_strike_is_one_topics_own(store: str, kind: Kind, tmp_path: Path) -> None:
    """C6, C31: each topic is as before or as after, those that were not struck as after, and all get through."""
    anew = prepared_again(MAKERS[store], several_topics, tmp_path)
    untouched = anew()
    before = {name: picture(untouched, name) for name in TOPICS}
    assert all(got_through(result) for result in a_run(untouched).values())
    after = {name: picture(untouched, name) for name in TOPICS}
    assert all(before[name] != after[name] for name in TOPICS)
    for injector in strikes(kind, store):
        warehouse = anew()
        results: dict[TopicName, TopicResult | LithifyError] = {}
        try:
            results = a_run(warehouse, injector)
        except CrashError:
            assert kind is Kind.CRASHES_AFTER
        for name in TOPICS:
            check_whole(warehouse, name)
            well = name in results and got_through(results[name])
            assert picture(warehouse, name) in ([after[name]] if well else [before[name], after[name]]), injector
        if results and injector.calls[injector.at - 1 :][:1] not in ([call] for call in OF_ALL_LOGS):
            assert sum(not got_through(result) for result in results.values()) <= 1, injector
        for result in a_run(warehouse).values():
            assert got_through(result), injector
        assert {name: picture(warehouse, name) for name in TOPICS} == after
