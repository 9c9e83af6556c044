"""Completion in real shells other than Bash, which a machine may lack: Debian's packages `zsh` and `fish`."""

from __future__ import annotations

from pathlib import Path

import pytest

import lithify
from support.processes.shells import shell

PULSARS = "persistent://shop/eu/orders"


@pytest.fixture(autouse=True)
def _topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program completes their names."""
    monkeypatch.setenv("LITHIFY_WAREHOUSE", str(tmp_path))
    lake = lithify.open(str(tmp_path))
    for name in ("orders", PULSARS):
        lake.create_topic(name)


def test_fish_completes() -> None:
    lines = ("lithify compact or", f"lithify topic info {PULSARS[:12]}", "lithify topic alter x --config delete.r")
    script = "lithify completion fish | source\n" + "\n".join(f"complete -C '{line}'" for line in lines)
    assert shell("fish", "--no-config", "-c", script) == ["orders", PULSARS, "delete.retention.ms="]


def test_zsh_completes() -> None:
    """Its completions exist only in its line editor; what they would add is shown by replacing `compadd`."""
    script = """
compdef() {}
compadd() { print -r -- "$@" "${(P@)@[-1]}" }
eval "$(lithify completion zsh)"
words=(lithify compact or) CURRENT=3; _lithify_completion
words=(lithify topic info persistent:) CURRENT=4; _lithify_completion
words=(lithify topic alter x --config delete.r) CURRENT=6; _lithify_completion
"""
    assert shell("zsh", "-f", "-c", script) == [
        "-U -V unsorted -a whole orders",
        f"-U -V unsorted -a whole {PULSARS}",
        "-U -V unsorted -S  -a open delete.retention.ms=",
    ]
