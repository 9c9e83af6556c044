"""A short soak: several cleaners, one of which is killed, and at the end every log is what the oracle leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TIMEOUT_S = 900
"""Of a machine that has much else to do: on a quiet one it takes a minute or so."""
FLAGS = {
    "minutes": 0.5,
    "topics": 12,
    "cleaners": 2,
    "strike-every": 13,
    "turns": 4,
    "verify": 2,
    "drain": 400,
    "seed": 5,
}


@pytest.mark.kills
@pytest.mark.spark
@pytest.mark.timeout(TIMEOUT_S + 60)
def test_what_is_fed_while_cleaners_are_killed_ends_as_the_oracle_says(tmp_path: Path) -> None:
    flags = [f"--{name}={value}" for name, value in FLAGS.items()]
    process = subprocess.Popen(
        [sys.executable, "-m", "soak.run", "--json", f"--folder={tmp_path}", *flags],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        printed, told = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.send_signal(signal.SIGTERM)  # it ends its cleaners and servers, if it still runs
        process.wait(timeout=60)
    assert process.returncode == 0, told
    figures = json.loads(printed)
    assert figures["findings"] == []
    assert figures["kills"] >= 1
    assert figures["told"]["rounds_changed"] > 0
    assert figures["records_compared"] > 0
