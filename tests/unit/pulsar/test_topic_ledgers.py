"""Which ledgers a range of a topic is in, and where bookies alone cannot tell what readers get."""

from __future__ import annotations

import pytest

from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.pulsar.bookkeeper import TopicLedgers

CONFIG = {
    "managedLedgerDigestType": "CRC32C",
    "managedLedgerPassword": "",
    "transactionCoordinatorEnabled": "false",
    "exposingBrokerEntryMetadataToClientEnabled": "false",
}


def stats(**change: object) -> dict[str, object]:
    ledgers = [
        {"ledgerId": ledger, "entries": entries, "offloaded": False} for ledger, entries in ((3, 5), (7, 2), (9, 0))
    ]
    cursors = {"__compaction": {"markDeletePosition": "3:4"}}
    return {"ledgers": ledgers, "compactedLedger": {"ledgerId": 8}, "cursors": cursors, **change}


def test_ledgers_view_and_horizon_are_taken_from_the_statistics():
    assert TopicLedgers.of(stats(), CONFIG) == TopicLedgers(((3, 5), (7, 2)), 9, 8, MessageId(3, 4))


def test_without_a_view_there_is_no_horizon():
    found = TopicLedgers.of(stats(compactedLedger={"ledgerId": -1}), CONFIG)
    assert found is not None and (found.view, found.horizon) == (None, MessageId(-1, -1))


@pytest.mark.parametrize(
    ("start", "end", "parts"),
    [
        ((0, 0), (9, 3), [(3, 0, 4), (7, 0, 1), (9, 0, 3)]),
        ((3, 2), (7, 0), [(3, 2, 4), (7, 0, 0)]),
        ((3, 5), (7, 9), [(7, 0, 1)]),
        ((4, 2), (8, 0), [(7, 0, 1)]),
        ((7, 0), (3, 4), []),
        ((9, 4), (9, 3), []),
    ],
)
def test_a_range_is_cut_at_the_ledgers(start, end, parts):
    ledgers = TopicLedgers(((3, 5), (7, 2)), 9, None, MessageId(-1, -1))
    assert list(ledgers.between(MessageId(*start), MessageId(*end))) == parts


@pytest.mark.parametrize(
    ("change", "config"),
    [
        (
            {
                "ledgers": [
                    {"ledgerId": 3, "entries": 5, "offloaded": True},
                    {"ledgerId": 9, "entries": 0, "offloaded": False},
                ]
            },
            {},
        ),
        ({}, {"transactionCoordinatorEnabled": "true"}),
        ({"ledgers": []}, {}),
    ],
)
def test_what_only_a_broker_can_read_is_left_to_it(change, config):
    assert TopicLedgers.of(stats(**change), {**CONFIG, **config}) is None


@pytest.mark.parametrize("change", [{"ledgers": None}, {"cursors": []}, {"compactedLedger": {}}, {"ledgers": [{}]}])
def test_statistics_of_another_shape_are_an_error(change):
    with pytest.raises(BrokerError):
        TopicLedgers.of(stats(**change), CONFIG)
