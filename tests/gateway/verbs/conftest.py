"""Fixtures of `tests/cli`, whose tests run here once more: what the verbs print through a gateway is the same."""

from cli.conftest import failing, masked, one_process, own_process, plain_rounds, wide

__all__ = ["failing", "masked", "one_process", "own_process", "plain_rounds", "wide"]
