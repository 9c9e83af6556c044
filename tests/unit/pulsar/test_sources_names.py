"""Names of topics are checked before Spark starts."""

from __future__ import annotations

import pytest

import lithify
from lithify.errors import InvalidNameError
from lithify.pulsar.client import ClientConfig


@pytest.mark.parametrize("name", ["orders", "public/default", "public/default/orders", "non-persistent://t/n/orders"])
def test_only_full_names_are_ingested(tmp_path, name):
    lake = lithify.open(str(tmp_path))
    with pytest.raises(InvalidNameError):
        lake.ingest_pulsar(ClientConfig("pulsar://127.0.0.1:1"), ["persistent://t/n/good", name])
