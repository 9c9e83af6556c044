"""Consumes a topic from its start: the compacted records from the lake, the rest live from Pulsar."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from lithify.errors import InvalidSettingError, RefusedError
from lithify.ports.topic import OpenTopic
from lithify.pulsar.client import ClientConfig
from lithify.pulsar_consumer.live_topic import PulsarTopic
from lithify.rules.reading.message_positions import check_has_ids
from lithify.service.documents import source_of
from lithify.service.snapshot.lake_and_live import LakeAndLive
from lithify.service.snapshot.position_file import PositionFile


class PulsarSnapshotConsumer(LakeAndLive):
    """Iterate over it for the records of `topic`, endlessly: the lake's, then Pulsar's, all with message ids.

    `cluster` needs the admin URL: only the admin interface shows what was trimmed, and whether the topic was
    recreated. `pulsar_topic` is the topic's name in Pulsar, by default the name of the copy. `partitions` and
    `position` are as for Kafka's `SnapshotConsumer`; the file also stores message ids. Records from Pulsar have
    the offsets that the copy will give them. For one thread.

    With `skip_damaged` an entry that its producer wrote damaged is one record, as `ingest_pulsar(…, skip_damaged=True)`
    copies it (C74), and `damaged()` names it. Without, it is a `DamagedError`.

    Raises `RefusedError` for a topic without message ids, `InvalidSettingError` without the admin URL, and what
    `LakeAndLive` raises.
    """

    def __init__(
        self,
        topic: OpenTopic,
        cluster: ClientConfig,
        *,
        pulsar_topic: str | None = None,
        partitions: Sequence[int] | None = None,
        position: str | PathLike[str] | None = None,
        skip_damaged: bool = False,
    ) -> None:
        if not cluster.admin_url:
            raise InvalidSettingError(
                "the admin URL of the Pulsar cluster is missing; a consumer needs it to find trimmed messages",
                hint="give admin_url",
            )
        state = topic.state()
        check_has_ids(state)
        copied = source_of(topic.warehouse.store, state)
        name = pulsar_topic or ("" if copied is None else copied.name)
        if not name:
            raise RefusedError(
                f"{topic.name}: the lake does not have the name of the Pulsar topic", hint="give pulsar_topic"
            )
        file = None if position is None else PositionFile(Path(position), topic.topic_name.stored, name, "Pulsar")
        self._pulsar = PulsarTopic(cluster, name, state.identity, topic.warehouse.clock, skip_damaged=skip_damaged)
        super().__init__(topic.warehouse, topic.topic_name, self._pulsar, partitions, file)

    def damaged(self) -> dict[int, tuple[int, tuple[str, ...]]]:
        """By partition, how many damaged entries this consumer has read from Pulsar and kept whole, and the first 100,
        as LEDGER:ENTRY. An ingest's report has the ones that it has copied."""
        return self._pulsar.damaged()
