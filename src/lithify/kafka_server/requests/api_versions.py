"""ApiVersions: what this server answers. It is asked first, and may be asked before a login."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lithify.kafka_protocol.codec import API_VERSIONS
from lithify.kafka_protocol.codes import Code


def answered(versions: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
    """The first and last version of each API."""
    rows = [{"api_key": key, "min_version": first, "max_version": last} for key, (first, last) in versions.items()]
    return {"api_keys": rows}


def other_version(versions: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
    """To a client that asks in a version that is not known: it asks again in one of these (KIP-511)."""
    return {"error_code": Code.UNSUPPORTED_VERSION, **answered({API_VERSIONS: versions[API_VERSIONS]})}
