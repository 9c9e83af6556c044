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
consume shop/orders
consume shop/orders --partition 0 --from 1
consume shop/orders --from @1
consume shop/orders --from latest
consume shop/orders --to 2
consume shop/orders --to @1
consume shop/orders --max 1
consume shop/orders --max 0
consume shop/orders --version 2
consume shop/orders --key a --encoding utf-8
consume shop/orders --key 61 --key-encoding hex
consume shop/orders --key none
consume shop/orders --value-encoding base64
consume shop/views --compacted
consume shop/views
consume events --encoding hex
table shop/orders
table shop/orders --at 2
table shop/orders --at @0
table shop/orders --key a
table shop/orders --key none
table shop/orders --key none --at 1
table shop/orders --partition 0 --version 2
table events --encoding base64
""".strip().splitlines()
EMPTY = {f"consume shop/orders {how}" for how in ("--from latest", "--to @1", "--max 0", "--key none")}
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
consume nothing
consume shop/order
consume a..b
consume shop/orders --partition 9
consume shop/orders-partition-9
consume shop/orders-partition-0 --partition 1
consume shop/orders --from 99
consume shop/orders --from -1
consume shop/orders --from 1:2
consume shop/orders --from soon
consume shop/orders --to 99
consume shop/orders --to 1 --version 2
consume shop/orders --to 1 --follow
consume shop/orders --version 99
consume shop/orders --version 2 --follow
consume shop/orders --key x --key-encoding hex
consume shop/orders --max -1
consume wide --from 1
consume wide --from 1 --follow
consume wide --to 1
consume pruned --to @1500
consume pruned --partition 0 --to 9
table nothing
table shop/orders --partition 9
table shop/orders --version 99
table shop/orders --at 99
table shop/orders --at 1 --version 2
table shop/orders --key x --encoding hex
table wide --at 1
produce nothing README
produce shop/order README
produce shop/orders no-such-file
produce shop/orders no-such-file.parquet
produce shop/orders --key k --format tsv README
produce shop/orders --null-marker x README
produce shop/orders-partition-9 README
topic info shop/orders --no-such-option
""".strip().splitlines()


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A warehouse with a compacted topic, one beside its log, one that is not compacted, and the URL of its gateway.

    The topic `pruned` has no version any more of which it is known how log 1 was at an earlier time.
    """
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
        lake.create_topic("wide", 2)
        pruned = lake.create_topic("pruned", 2, config={"versions.kept": 1})
        pruned.append([lithify.Record(key=b"k", value=b"1", timestamp=1000, partition=0)])
        for timestamp in (1000, 2000, 3000):
            pruned.append([lithify.Record(key=b"k", value=b"1", timestamp=timestamp, partition=1)])
            pruned.compact()
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
    assert direct.out or direct.err or "list" in line or "status" in line or line in EMPTY
