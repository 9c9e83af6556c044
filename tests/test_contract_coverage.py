"""Every rule of the contract (docs/guarantees.md) has a test that names it, and a promise in a few words.

Whether a test fails without the rule is for its reader to see; that there is one is for this module.
"""

from __future__ import annotations

import pytest

import guarantees_index

PROMISES = guarantees_index.promises(guarantees_index.PAGE.read_text("utf-8"))
RULES = [rule for rule, _ in PROMISES]
CITED = guarantees_index.cited()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"C{rule}")
def test_a_rule_has_a_test(rule: int) -> None:
    assert CITED.get(rule), f"no test names C{rule}"


def test_no_test_names_a_rule_that_the_contract_does_not_have() -> None:
    assert sorted(CITED.keys() - set(RULES)) == []


def test_the_contract_gives_every_number_once() -> None:
    assert len(RULES) == len(set(RULES)) > 40


def test_a_rule_opens_with_a_promise_of_at_most_fifteen_words() -> None:
    assert [f"C{rule}: {promise}" for rule, promise in PROMISES if not 0 < len(promise.split()) <= 15] == []


def test_the_index_of_the_rules_is_current() -> None:
    assert guarantees_index.PAGE.read_text("utf-8") == guarantees_index.page(), "run `just docs`"
