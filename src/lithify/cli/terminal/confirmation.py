"""Confirmation of irreversible verbs: without `--yes` they only print what they would remove."""

from __future__ import annotations

import time
from typing import NoReturn

import click

from lithify.errors import RefusedError
from lithify.model.settings.units import format_time

allow_clock_jump = click.option(
    "--allow-clock-jump", is_flag=True, help="Trust the clock although it is years from the topic's commits."
)
"""A flag of verbs that drop records or files by the clock (C46)."""


def refuse(refused: str, consequence: str) -> NoReturn:
    """Raises `RefusedError` for a verb without `--yes`: what was not done, and what it would do."""
    raise RefusedError(refused, hint=f"--yes {consequence}")


def check_now(now_ms: int | None, yes: bool, what_goes: str, look_first: str = "") -> None:
    """Raises `RefusedError` if `--now` is later than the clock and there is no `--yes`."""
    if now_ms is not None and now_ms > time.time() * 1000 and not yes:
        raise RefusedError(
            f"--now {format_time(now_ms)} is later than the clock, and {what_goes} cannot be restored",
            hint="add --yes to run it" + (f", {look_first}" if look_first else ""),
        )
