"""What an error is to be blamed on, as a cleaner judges it (C31)."""

from __future__ import annotations

from enum import Enum


class Blame(Enum):
    """What has to change before a retry can succeed (C31)."""

    LOG = "what is stored of a log, what was asked for, or a defect"
    STORE = "the store or catalog that all logs are in, and its free space"
    ENGINE = "Java, Spark, and the memory and disks of the machines that run rounds"
    CLOCK = "the clock of this machine, or a person's confirmation that it is right"
    NONE = "nothing: another commit was first, or the error was requested"
