"""The audit log of a gateway that runs: the line of its start, and what is told where lines cannot be written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lithify.daemons.outages import OutageReporter
from lithify.errors import UnusableEnvironmentError
from lithify.gateway.access.audit import AuditEntry, AuditFile

AUDIT = "the audit log"
"""What a gateway tries again and again to write, as texts name it."""


@dataclass(frozen=True, slots=True)
class Audited:
    """The audit log of one gateway, whose events say since when it cannot be written."""

    path: Path
    file: AuditFile
    reporter: OutageReporter

    def told(self, error: OSError | None) -> None:
        """Takes what a try to write came to."""
        if error is None:
            self.reporter.well(AUDIT)
        else:
            self.reporter.outage(AUDIT, unwritable(self.path, error))

    def close(self) -> None:
        """Closes it; events have the lines that could not be written, so that none is lost."""
        for line in self.file.close():
            code = UnusableEnvironmentError("").code
            self.reporter.told("trouble", error=f"{self.path} lacks a line: {line}", error_code=code)


def open_audit(path: Path, address: str, reporter: OutageReporter) -> Audited:
    """The audit log of a gateway that starts on that address. Raises `UnusableEnvironmentError`."""
    file = AuditFile(path)
    file.write(AuditEntry(reporter.clock.now_ms(), None, None, address, None, {"what": "start"}))
    try:
        file.check()
    except OSError as error:
        raise unwritable(path, error) from None
    audited = Audited(path, file, reporter)
    file.told = audited.told
    return audited


def unwritable(path: Path, error: OSError) -> UnusableEnvironmentError:
    """Why no line can be written."""
    reason = f"{AUDIT} {path} cannot be written: {error.strerror}"
    return UnusableEnvironmentError(reason, hint="free space on its disk, or correct --audit-log or its rights")
