"""Fetch: batches of records from where a client is, waited for if there are none yet.

    for each partition, in the order of the request      whole batches, up to its bytes and those of the whole answer
    the first batch of an answer                         also if it is larger (KIP-74)
    fewer bytes than the client wants                    waits for a commit to one of the topics, up to its time

There are no fetch sessions: each request names all of its partitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.logs.served_log import ServedLog
from lithify.kafka_server.logs.served_topic import ServedTopic
from lithify.kafka_server.requests.context import Context
from lithify.kafka_server.requests.topics import NO_ID, found, read_from

BYTES_AT_MOST = 64 * 2**20
WAIT_MS_AT_MOST = 60_000


@dataclass(slots=True)
class _Gathered:
    """What an answer has so far. `topics` are those that may get more records."""

    room: int
    """Bytes."""
    size_bytes: int = 0
    responses: list[dict[str, Any]] = field(default_factory=list)
    topics: dict[bytes, ServedTopic] = field(default_factory=dict)
    has_error: bool = False
    asked: set[tuple[Any, ...]] = field(default_factory=set)

    def is_new(self, place: tuple[Any, ...]) -> bool:
        """Whether a partition is named for the first time. One that is named again gets no second answer."""
        before = len(self.asked)
        self.asked.add(place)
        return len(self.asked) > before

    def refused(self, partition: int, code: Code) -> dict[str, Any]:
        self.has_error = True
        return {"partition_index": partition, "error_code": code, "high_watermark": -1, "records": b""}

    def read(self, log: ServedLog, offset: int, partition_bytes: int) -> Sequence[Any]:
        """The batches for which there is room; the first of an answer in any case."""
        room = max(0, min(partition_bytes, self.room))
        if not room and self.size_bytes:
            return ()
        batches = log.batches(offset, room)
        size = sum(map(len, batches))
        if self.size_bytes and size > room:
            return ()
        self.size_bytes, self.room = self.size_bytes + size, self.room - size
        return batches


async def fetch(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The batches, and where each log begins and ends."""
    if request.get("session_id", 0):
        return {"error_code": Code.FETCH_SESSION_ID_NOT_FOUND}
    loop = asyncio.get_running_loop()
    until_s = loop.time() + min(max(request["max_wait_ms"], 0), WAIT_MS_AT_MOST) / 1000
    while True:
        gathered = await context.work(lambda: _gathered(context, request))
        left_s = until_s - loop.time()
        if gathered.size_bytes >= request["min_bytes"] or gathered.has_error or left_s <= 0:
            return {"responses": gathered.responses}
        topics = [*gathered.topics.values()]
        del gathered  # no client keeps batches in memory while it waits
        await _changed(context, topics, left_s)


async def _changed(context: Context, topics: Sequence[ServedTopic], seconds: float) -> None:
    """Waits for a later version of one of the topics."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def tell() -> None:
        loop.call_soon_threadsafe(changed.set)

    unsubscribe = context.topics.subscribe(topics, tell)
    try:
        async with asyncio.timeout(seconds):
            await changed.wait()
    except TimeoutError:
        return
    finally:
        unsubscribe()


def _gathered(context: Context, request: dict[str, Any]) -> _Gathered:
    context = replace(context, looks=context.topics.begun)  # it may have waited since
    gathered = _Gathered(min(request["max_bytes"], BYTES_AT_MOST))
    for asked in request["topics"]:
        topic = found(context, asked.get("topic"), asked.get("topic_id", NO_ID))
        if isinstance(topic, ServedTopic):
            gathered.topics[topic.topic_id] = topic
        same = {name: asked[name] for name in ("topic", "topic_id") if name in asked}
        new = [one for one in asked["partitions"] if gathered.is_new((*same.values(), one["partition"]))]
        partitions = [_partition(context, topic, one, gathered) for one in new]
        gathered.responses.append({**same, "partitions": partitions})
    return gathered


def _partition(
    context: Context, topic: ServedTopic | Code, asked: dict[str, Any], gathered: _Gathered
) -> dict[str, Any]:
    def read(log: ServedLog) -> dict[str, Any]:
        records = gathered.read(log, asked["fetch_offset"], asked["partition_max_bytes"])
        return {
            "partition_index": asked["partition"],
            "high_watermark": log.end,
            "last_stable_offset": log.end,
            "log_start_offset": log.start,
            "records": records,
        }

    outcome = read_from(context, topic, asked["partition"], asked.get("current_leader_epoch", -1), read)
    return gathered.refused(asked["partition"], outcome) if isinstance(outcome, Code) else outcome
