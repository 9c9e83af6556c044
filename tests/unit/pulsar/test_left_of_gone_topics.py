"""What `pulsar leftovers` prints: bounded, whatever was left."""

from __future__ import annotations

import pytest

from lithify.reports.pulsar.leftovers import SHOWN_AT_MOST, LeftLedger, LeftoversReport, leftovers_text

TOPIC = "persistent://shop/orders/states"


@pytest.mark.parametrize(
    ("count", "deleted", "said"),
    [
        (0, True, ["no round has left a ledger"]),
        (
            1,
            False,
            [f"ledger 0 of {TOPIC}, which is gone", "1 ledger that rounds left: can be deleted; --yes deletes it"],
        ),
        (
            2,
            True,
            [f"ledger 0 of {TOPIC}, which is gone", f"ledger 1 of {TOPIC}", "2 ledgers that rounds left: deleted"],
        ),
    ],
)
def test_each_ledger_is_named(count: int, deleted: bool, said: list[str]) -> None:
    assert leftovers_text(report(count, deleted)) == said


def test_only_the_first_of_many_are_named() -> None:
    text = leftovers_text(report(SHOWN_AT_MOST + 1200, False))
    assert len(text) == SHOWN_AT_MOST + 2
    assert text[-2:] == ["and 1,200 more", "1,300 ledgers that rounds left: can be deleted; --yes deletes them"]


def report(count: int, deleted: bool) -> LeftoversReport:
    return LeftoversReport(
        tuple(LeftLedger(number, TOPIC, "run", gone=number == 0) for number in range(count)), deleted
    )
