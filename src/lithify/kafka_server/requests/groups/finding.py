"""FindCoordinator: the gateway that coordinates a group."""

from __future__ import annotations

from typing import Any

from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.requests.context import Context

_GROUP = 0
_SEVERAL_FROM = 4
"""The first version that asks for several at once."""


async def find_coordinator(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """The gateway of each group; there are no transactions."""
    kind = request.get("key_type", _GROUP)
    if context.version < _SEVERAL_FROM:
        return _coordinator(context, request["key"], kind)
    keys = dict.fromkeys(request["coordinator_keys"])
    return {"coordinators": await context.work(lambda: [{"key": k, **_coordinator(context, k, kind)} for k in keys])}


def _coordinator(context: Context, group: str, kind: int) -> dict[str, Any]:
    nobody = {"node_id": -1, "port": -1}
    if kind != _GROUP:
        return {"error_code": Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, **nobody}
    node = context.served.cluster.coordinator_of(group)
    if node is None:
        return {"error_code": Code.COORDINATOR_NOT_AVAILABLE, **nobody}
    return {"node_id": node.node_id, "host": node.host, "port": node.port}
