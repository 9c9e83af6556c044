"""The handlers of requests about consumer groups, by the key of their API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lithify.kafka_server.requests.context import Handler
from lithify.kafka_server.requests.groups.consumers import consumer_group_heartbeat
from lithify.kafka_server.requests.groups.finding import find_coordinator
from lithify.kafka_server.requests.groups.looks import (
    consumer_group_describe,
    delete_groups,
    describe_groups,
    list_groups,
)
from lithify.kafka_server.requests.groups.members import heartbeat, join_group, leave_group, sync_group
from lithify.kafka_server.requests.groups.offsets import offset_commit, offset_delete, offset_fetch

GROUP_HANDLERS: Final[Mapping[int, Handler]] = {
    8: offset_commit,
    9: offset_fetch,
    10: find_coordinator,
    11: join_group,
    12: heartbeat,
    13: leave_group,
    14: sync_group,
    15: describe_groups,
    16: list_groups,
    42: delete_groups,
    47: offset_delete,
    68: consumer_group_heartbeat,
    69: consumer_group_describe,
}
