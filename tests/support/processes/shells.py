"""Real shells, which find the program of this environment first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def shell(*command: str) -> list[str]:
    """The lines that it prints; it must succeed, without a word on stderr."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout.split("\n")[:-1]
