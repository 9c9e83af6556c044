"""Fixtures of `tests/cli`, whose tests run here once more: what the verbs print through a gateway is the same."""

from pathlib import Path

import pytest

from cli.conftest import failing, masked, one_process, own_process, plain_rounds, wide

__all__ = ["failing", "masked", "one_process", "own_process", "plain_rounds", "wide"]


@pytest.fixture
def begins_chain() -> int:
    """An append with a key begins the chain of the runs that have keys, in a version of its own (C75)."""
    return 1


_HAS_MADE_IT = "a gateway has made its warehouse, and has read its format, when it begins"
OTHERWISE = {
    "test_an_empty_warehouse_has_no_topics_and_stays_empty": _HAS_MADE_IT,
    "test_an_empty_warehouse_has_no_streams_and_stays_empty": _HAS_MADE_IT,
    "test_where_there_is_no_warehouse_none_is_made": _HAS_MADE_IT,
    "test_a_warehouse_that_is_not_there_is_an_error": _HAS_MADE_IT,
    "test_one_of_a_newer_lithify_is_neither_read_nor_written": _HAS_MADE_IT,
    "test_one_of_a_newer_lithify_may_say_the_rest_in_another_way": _HAS_MADE_IT,
    "test_a_damaged_format_is_named_with_what_helps": _HAS_MADE_IT,
    "test_every_verb_says_that_the_identity_is_lost_and_how_to_give_it_back_c73": _HAS_MADE_IT,
    "test_a_catalog_without_a_database_needs_a_url": "a gateway has its own database",
    "test_a_group_that_a_topic_waits_for_is_described_before_it_reads": "no path of HTTP can have the group `..`",
    "test_an_interrupt_is_quiet_and_leaves_nothing_behind": "its Spark is the gateway's; see client/test_ctrl_c.py",
    "test_the_topic_is_loaded_twice_before_the_first_batch_and_twice_for_each": "a gateway looks for keys as well",
    "test_the_demo_shows_a_log_before_and_after": "it has a warehouse of its own",
}
"""What is not the same, and why."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves these tests out here."""
    here = [item for item in items if item.path.parent == Path(__file__).parent]
    left_out = [item for item in here if getattr(item, "originalname", item.name) in OTHERWISE]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
