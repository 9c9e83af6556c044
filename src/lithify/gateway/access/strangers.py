"""Those who fail to say who they are, by any door of a gateway: counted by address, with a line in the audit log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from lithify.errors import AccessDeniedError
from lithify.gateway.access.audit import Audit, AuditEntry
from lithify.gateway.access.failures import Failures


@dataclass(frozen=True, slots=True)
class Strangers:
    """For several threads. `now_ms` is the clock of the audit log."""

    failures: Failures
    now_ms: Callable[[], int]
    audit: Audit | None = None

    def failed(self, address: str, what: str) -> bool:
        """Counts a failure outside HTTP. Whether it is one too many, which gets no line."""
        is_too_many = self.failures.too_many(address) > 0
        if self.audit is not None and not is_too_many:
            facts = {"what": what, "code": AccessDeniedError("").code}
            self.audit.write(AuditEntry(self.now_ms(), None, None, address, HTTPStatus.UNAUTHORIZED, facts))
        return is_too_many
