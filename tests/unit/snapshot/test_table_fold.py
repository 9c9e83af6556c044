"""A dict as the table of a topic, against the oracle of rounds (C9 to C12, C17)."""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest

from lithify.model.record import Record
from lithify.model.settings.table import Strategy
from lithify.model.topic.log import LogState
from lithify.rules.compaction.survivor_rules import table_rules
from lithify.rules.compaction.survivors import survivors
from lithify.service.snapshot.table_fold import TableFold
from support.builders import some_settings


def some_records(seed: int) -> list[Record]:
    luck = Random(seed)
    return [
        Record(
            luck.choice([None, b"", b"a", b"b", b"c"]),
            luck.choice([None, b"", b"v%d" % offset]),
            luck.randrange(6),
            (("v", luck.choice([None, b"short", luck.randrange(6).to_bytes(8, "big")])),)
            if luck.random() < 0.8
            else (),
            0,
            offset,
        )
        for offset in range(40)
    ]


@pytest.mark.parametrize("strategy", get_args(Strategy))
@pytest.mark.parametrize("empty_value", ["value", "tombstone"])
@pytest.mark.parametrize("seed", range(10))
def test_the_table_is_what_the_rules_leave(strategy, empty_value, seed):
    more = {"compaction_strategy_header": "v"} if strategy == "header" else {}
    settings = some_settings(compaction_strategy=strategy, empty_value=empty_value, **more)
    records, fold, table = some_records(seed), TableFold(settings), {}
    for end, record in enumerate(records, 1):
        fold.put_all(table, [record])
        left = survivors(records[:end], table_rules(LogState(0, log_end_offset=end), settings)).records
        assert table == {r.key: r for r in left}
