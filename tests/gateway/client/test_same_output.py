"""What the verbs print through a gateway is, byte for byte, what they print beside it: looks, plans and errors.

Verbs that change something are compared by `tests/gateway/verbs`, which runs their own tests through a gateway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import lithify
from lithify.testing.oracle_engine import OracleEngine
from support.processes.in_process import Program
from support.servers.gateways import serving_gateway

NOW = "@1700000000000"
LOOKS = f"""
topic list
topic info shop/orders
topic describe shop/orders
stream list
stream info shop
warehouse info
status --now {NOW}
status --all --now {NOW}
status shop/orders --now {NOW}
history shop/orders
versions shop/orders
compact shop/orders --plan --now {NOW}
quarantine list
group list
sweep
sweep shop/orders
replica status
gateway job list
""".strip().splitlines()
REFUSED = """
delete-records shop/orders --partition 0 --before 1
truncate shop/orders --partition 0 --to 2
undo shop/orders
topic uncompact shop/views
topic delete shop/orders
stream delete shop
group delete billing
group reset billing --topic events --to-earliest
topic info nothing
topic info shop/order
topic info a..b
topic alter nothing --partitions 2
topic alter shop/orders --config segment.bytes=-1
topic alter shop/orders --config no.such=1
topic create shop/orders
topic create new --config no.such=1
topic create new --like nothing
topic delete nothing --yes
stream info nothing
stream create a/b/c
stream edit nothing --config compact=true
status nothing
status shop/orders-partition-9
history nothing
history shop/orders-partition-0
versions nothing
compact nothing
compact nothing --plan
compact shop/orders --partition 9
compact shop/orders-partition-0 --partition 1
compact shop/orders --now @99999999999999
verify nothing
verify shop/orders --against 99
retain nothing
retain shop/orders --now @99999999999999
undo events --yes
undo nothing --yes
truncate shop/orders --partition 0 --to 99 --yes
truncate shop/orders --partition 9 --to 0 --yes
delete-records shop/orders --partition 0 --before 99 --yes
topic uncompact events --yes
group describe nothing
group reset nothing --topic events --to-earliest --yes
quarantine release nothing
throttle nothing --read-rate 1MB/s
sweep nothing
replica status nothing
gateway job pause nothing
gateway job add copy -- topic list
gateway job add copy -- hydrate orders --to x.db
topic no-such-verb
topic info shop/orders --no-such-option
""".strip().splitlines()


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A warehouse with a compacted topic, one beside its log, one that is not compacted, and the URL of its gateway."""
    folder = tmp_path_factory.mktemp("same")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lithify.api.topic.spark_engine", lambda warehouse, *_: OracleEngine(warehouse.files))
        patch.setenv("COLUMNS", "80")
        lake = lithify.open(str(folder / "lake"))
        records = [lithify.Record(key=key, value=b"1", timestamp=1) for key in (b"a", b"a", b"b")]
        configs = {
            "shop/orders": {},
            "shop/views": {"compaction.mode": "side-by-side"},
            "events": {"cleanup.policy": "delete"},
        }
        for name, config in configs.items():
            lake.create_topic(name, config=config).append(records)
        for name in ("shop/orders", "shop/views"):
            lake.topic(name).compact()
        with lake.topic("events").reader(group="billing") as reader:
            for _ in reader.batches():
                reader.commit()
        with serving_gateway(lake) as url:
            yield folder / "lake", url


def untimed(out: str) -> str:
    """Without the clock, which goes on between the two."""
    return re.sub(r'"(duration_ms|now_ms|old_version_until_ms)": \d+', "", out)


CASES = [*((0, line) for line in LOOKS), *((2, line) for line in REFUSED)]


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(("code", "line"), CASES, ids=[line for _, line in CASES])
def test_the_output_is_the_same(there, code, line, form):
    warehouse, url = there
    program = Program(warehouse)
    direct = program("--warehouse", warehouse, *form, *line.split(), code=code)
    through = program("--gateway", url, *form, *line.split(), code=code)
    assert (untimed(through.out), through.err) == (untimed(direct.out), direct.err)
    assert direct.out or direct.err or "list" in line or "status" in line
