"""Names of Pulsar's topics: `persistent://tenant/namespace/topic`, and of their partitions.

Short names such as `topic`, which Pulsar's clients complete, are refused: a command that deletes what it
compacts must not guess. Topics that are not persistent have no entries to read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, quote_plus

from lithify.errors import BrokerError, InvalidNameError

_NAME = re.compile(r"(\w[\w-]*)://([\w=:.-]+)/([\w=:.-]+)/(?!\s)([^/\x00-\x1f\ud800-\udfff]+)", re.ASCII)
PARTITIONS_AT_MOST: Final = 1 << 20
"""Each takes a round trip and some memory."""

_PARTITION = re.compile(r"-partition-(0|[1-9]\d{0,8})$")


@dataclass(frozen=True, slots=True)
class TopicName:
    """A topic, or one partition of it."""

    tenant: str
    namespace: str
    local: str

    @classmethod
    def parsed(cls, name: str) -> TopicName:
        """Raises `InvalidNameError`."""
        match = _NAME.fullmatch(name)
        if match is None:
            hint = "write it as persistent://tenant/namespace/topic"
            raise InvalidNameError(f"{name!r} is not the name of a Pulsar topic", hint=hint)
        domain, tenant, namespace, local = match.groups()
        if not {".", ".."}.isdisjoint((tenant, namespace, local)):  # another place, in the admin interface's URLs
            raise InvalidNameError(f"{name!r} is not the name of a Pulsar topic: a part of it is . or ..")
        if domain != "persistent":
            hint = "use a persistent:// topic: brokers do not store the entries of others"
            raise InvalidNameError(f"{name} is not a persistent topic", hint=hint)
        return cls(tenant, namespace, local)

    def __str__(self) -> str:
        return f"persistent://{self.tenant}/{self.namespace}/{self.local}"

    @property
    def path(self) -> str:
        """As the admin interface has it in its URLs."""
        return "/".join(("persistent", *(quote(part, safe="") for part in (self.tenant, self.namespace, self.local))))

    @property
    def managed_ledger(self) -> str:
        """As BookKeeper's metadata have it: encoded by Java's URLEncoder."""
        local = quote_plus(self.local, safe="*").replace("~", "%7E")
        return f"{self.tenant}/{self.namespace}/persistent/{local}"

    @property
    def partition(self) -> int:
        """-1 for a topic as a whole, as Pulsar says it."""
        match = _PARTITION.search(self.local)
        return int(match[1]) if match else -1

    @property
    def whole(self) -> TopicName:
        """The topic that a partition is of."""
        return TopicName(self.tenant, self.namespace, _PARTITION.sub("", self.local))

    def of_partition(self, partition: int) -> TopicName:
        return TopicName(self.tenant, self.namespace, f"{self.local}-partition-{partition}")


def checked_count(topic: str, partitions: int) -> int:
    """How many partitions a topic has by what a broker tells. Raises `BrokerError` for what cannot be."""
    if not 0 <= partitions <= PARTITIONS_AT_MOST:
        raise BrokerError(
            f"{topic}: it would have {partitions} partitions, but Lithify reads at most {PARTITIONS_AT_MOST}"
        )
    return partitions


def partition_name(topic: str, partition: int, count: int) -> str:
    """The name of one partition; a topic that is not partitioned, with a count of 0, is its own."""
    return topic if count == 0 else str(TopicName.parsed(topic).of_partition(partition))
