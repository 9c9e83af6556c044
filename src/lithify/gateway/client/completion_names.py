"""The names behind a gateway, as a shell completes them: it gives up rather than waits, and then has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lithify.errors import LithifyError
from lithify.gateway.client.address import Trust
from lithify.gateway.client.remote_lake import RemoteLake, remote_lake

PATIENCE_S = 3.0


@dataclass(frozen=True, slots=True)
class RemoteNames:
    """Names by kind. Raises nothing: what cannot be read is empty."""

    url: str
    trust: Trust

    def topics(self) -> list[str]:
        return self._names(lambda lake: (topic.name for topic in lake.topics()))

    def streams(self) -> list[str]:
        return self._names(lambda lake: (info.stream for info in lake.streams()))

    def groups(self) -> list[str]:
        return self._names(lambda lake: (info.group for info in lake.groups()))

    def replicas(self) -> list[str]:
        return self._names(lambda lake: dict.fromkeys(status.name for status in lake.replicas().status()))

    def standing_jobs(self) -> list[str]:
        return self._names(lambda lake: (info.name for info in lake.standing_jobs().list()))

    def tokens(self) -> list[str]:
        """No gateway tells them."""
        return []

    def _names(self, read: Callable[[RemoteLake], Iterable[str]]) -> list[str]:
        try:
            lake = remote_lake(self.url, self.trust, within_s=PATIENCE_S)
            try:
                return list(read(lake))
            finally:
                lake.close()
        except LithifyError:
            return []
