"""`replica …`: whole outputs, the JSON contract, exit codes."""

from __future__ import annotations

import json
import re

import pytest

import lithify as package
from lithify.api.wiring import open_warehouse
from lithify.api.wiring.replicas import replicas_of
from lithify.api.wiring.scopes import scope_of
from lithify.model.names import TopicName
from lithify.model.replicas.replica_progress import ReplicaStanding, TopicProgress
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror

ORDERS = TopicName("default", "orders")


@pytest.fixture
def orders(lithify):
    """A topic of two partitions with three records each."""
    lithify("topic", "create", "orders", "--partitions", 2)
    feed(lithify)
    return lithify


def feed(lithify, topic="orders"):
    lines = [json.dumps({"partition": n % 2, "key": f"k{n}", "value": f"{n}", "timestamp": 1_000}) for n in range(6)]
    lithify("produce", topic, stdin="\n".join(lines))


@pytest.fixture
def backup(tmp_path):
    return tmp_path / "backup"


def copied(lithify, backup, topic=ORDERS, compact=False):
    source = open_warehouse(str(lithify.warehouse))
    return mirror(source, open_warehouse(str(backup)), topic, MirrorRequest(scope_of(source).where, compact=compact))


def statuses(lithify, *arguments):
    return lithify("replica", "status", "--json", *arguments).lines


def test_add_edit_pause_resume_and_remove(orders, backup, tmp_path):
    added = orders("replica", "add", "orders", "--to", backup, "--throttle", "20MB/s")
    place = str(backup)
    assert added.err == (
        f"replica orders-to-backup: orders → {place}, at most 19.1 MiB/s (`lithify replica run` copies it)\n"
    )
    info = orders("replica", "edit", "orders-to-backup", "--unlimited", "--json").json
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT.*Z", info.pop("created_at"))
    assert info == {
        "name": "orders-to-backup",
        "source": "orders",
        "target": place,
        "throttle_bytes": None,
        "paused": False,
        "sync_groups": False,
        "compact": False,
    }
    assert orders("replica", "pause", "orders-to-backup").err == f"replica orders-to-backup: orders → {place}, paused\n"
    assert statuses(orders)[0]["state"] == "paused"
    assert orders("replica", "resume", "orders-to-backup").err == f"replica orders-to-backup: orders → {place}\n"
    removed = orders("replica", "remove", "orders-to-backup").err
    assert removed == f"replica orders-to-backup: orders → {place}: removed; the topics at {place} remain\n"
    assert orders("replica", "status").err.startswith("no replicas yet (`lithify replica add")
    assert statuses(orders) == []


@pytest.mark.usefixtures("wide")
def test_status_before_and_after_a_copy(orders, backup):
    orders("replica", "add", "orders", "--to", backup)
    waiting = {
        "name": "orders-to-backup",
        "topic": "orders",
        "target": str(backup),
        "state": "waiting",
        "source_version": 2,
        "replica_version": None,
        "lag_records": 6,
        "error": None,
        "next_retry_at": None,
        "copied_bytes": 0,
        "to_copy_bytes": 0,
        "log_end_offsets": None,
        "positions": None,
        "positions_behind": None,
        "positions_error": None,
        "compact": False,
        "not_compacting": None,
    }
    (found,) = statuses(orders)
    assert (found.pop("lag_bytes") > 0, found.pop("lag_ms") >= 0) == (True, True)
    assert found == waiting
    copied(orders, backup)
    (found,) = statuses(orders)
    up_to_date = {"replica_version": 2, "lag_records": 0, "lag_bytes": 0, "lag_ms": 0}
    assert found == waiting | up_to_date | {"log_end_offsets": {"0": 3, "1": 3}}
    feed(orders)
    (found,) = statuses(orders, "orders-to-backup")
    assert (found["source_version"], found["replica_version"], found["lag_records"]) == (3, 2, 6)
    shown = orders("replica", "status").out.splitlines()
    assert re.split(r"  +", shown[0]) == [
        "REPLICA",
        "TOPIC",
        "TARGET",
        "STATE",
        "VERSION",
        "LAG",
        "LAG BYTES",
        "LAG TIME",
    ]
    assert re.split(r"  +", shown[1])[:6] == ["orders-to-backup", "orders", str(backup), "waiting", "2 of 3", "6"]


@pytest.mark.usefixtures("wide")
def test_a_replica_that_compacts_by_itself_c67(orders, backup):
    orders("topic", "alter", "orders", "--config", "cleanup.policy=delete")
    added = orders("replica", "add", "orders", "--to", backup, "--compact")
    assert added.err.startswith(
        f"replica orders-to-backup: orders → {backup}, compacts by itself (`lithify replica run"
    )
    assert below(orders) == "does not compact by itself: it starts with the next copy"
    copied(orders, backup, compact=True)
    assert below(orders) == "compacts by itself"
    shown = orders("topic", "info", "orders", "--warehouse", backup).out
    assert re.search(r"policy +compact,delete, side-by-side\n", shown)
    assert re.search(r"rounds +its own: it compacts by itself, beside the log of its source\n", shown)
    assert re.search(r"cleanup\.policy +compact,delete, of the topic", shown)
    refused = orders("undo", "orders", "--yes", "--warehouse", backup, code=2)
    assert "it compacts by itself, but everything else follows that topic" in refused.err
    orders("topic", "alter", "orders", "--config", "cleanup.policy=compact")
    copied(orders, backup, compact=True)
    why_not = "its source compacts"
    assert below(orders) == f"does not compact by itself: {why_not}"
    info = orders("topic", "info", "orders", "--warehouse", backup, "--json").json
    assert (info["compacts_by_itself"], info["not_compacting"]) == (False, why_not)
    assert f"none of its own: {why_not}" in orders("topic", "info", "orders", "--warehouse", backup).out
    assert orders("replica", "edit", "orders-to-backup", "--no-compact", "--json").json["compact"] is False
    assert len(orders("replica", "status").out.splitlines()) == 2
    nothing = orders("replica", "edit", "orders-to-backup", code=2)
    assert "pass --throttle, --unlimited, --[no-]sync-groups or --[no-]compact" in nothing.err


def below(lithify):
    """What `replica status` says below the line of the only topic."""
    return lithify("replica", "status").out.splitlines()[2].strip()


@pytest.mark.usefixtures("wide")
def test_status_shows_what_a_daemon_has_noted(orders, backup, monkeypatch):
    orders("replica", "add", "orders", "--to", backup)
    replicas = replicas_of(open_warehouse(str(orders.warehouse)), None)
    noted = TopicProgress("orders-to-backup", ORDERS, ReplicaStanding.FAILED, 5, "host-1")
    failed = {"failures": 2, "error": "the target is full", "retry_ms": 1_700_000_000_000}
    replicas.note([TopicProgress(**{name: getattr(noted, name) for name in noted.__slots__} | failed)])
    (found,) = statuses(orders)
    assert (found["state"], found["error"], found["next_retry_at"]) == (
        "failed",
        "the target is full",
        "2023-11-14T22:13:20.000Z",
    )
    shown = orders("replica", "status").out.splitlines()
    assert "FAILED" in shown[1]
    assert shown[2].strip() == "the target is full (again at 2023-11-14T22:13:20.000Z)"


def test_positions_of_groups_are_copied_where_that_is_asked_for_c68(orders, backup):
    added = orders("replica", "add", "orders", "--to", backup, "--sync-groups").err
    assert added.startswith(f"replica orders-to-backup: orders → {backup}, with committed positions (")
    orders("consume", "orders", "--group", "g")
    orders("replica", "run", "--once")
    (found,) = statuses(orders)
    assert (found["positions"], found["positions_behind"], found["positions_error"]) == (2, 0, None)
    feed(orders)
    orders("consume", "orders", "--group", "g")
    assert statuses(orders)[0]["positions_behind"] == 2
    assert orders("replica", "status").out.splitlines()[-1].strip() == "2 of 2 committed positions not as at the source"
    edited = orders("replica", "edit", "orders-to-backup", "--no-sync-groups")
    assert edited.err == f"replica orders-to-backup: orders → {backup}\n"
    assert statuses(orders)[0]["positions"] is None
    orders("replica", "run", "--once")
    orders("replica", "edit", "orders-to-backup", "--sync-groups")
    assert statuses(orders)[0]["positions_behind"] == 2
    orders("replica", "run", "--once")
    assert statuses(orders)[0]["positions_behind"] == 0
    feed(orders)
    orders("replica", "run", "--once")
    there = ("--warehouse", str(backup))
    orders("replica", "promote", "orders", "--yes", *there)
    assert len(orders("consume", "orders", "--group", "g", *there).lines) == 6, "from the positions of the source on"


def test_positions_go_to_no_catalog_without_a_database_that_processes_share_c68(orders, tmp_path, monkeypatch):
    monkeypatch.setenv("PYICEBERG_CATALOG__PASSING__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__PASSING__URI", "sqlite:///:memory:")
    monkeypatch.setenv("PYICEBERG_CATALOG__PASSING__WAREHOUSE", f"file://{tmp_path}/passing")
    monkeypatch.setenv("LITHIFY_COORDINATION_URL", f"sqlite:///{tmp_path}/leases.db")
    said = orders.error("replica", "add", "orders", "--to", "passing", "--sync-groups")
    assert "committed positions cannot be copied there: its catalog is not an SQL database that processes share" in said
    assert statuses(orders) == []


def test_an_edit_says_what_it_changes(orders, backup):
    orders("replica", "add", "orders", "--to", backup)
    assert "pass --throttle, --unlimited, --[no-]sync-groups or --[no-]compact" in orders.error(
        "replica", "edit", "orders-to-backup"
    )
    given = ("replica", "edit", "orders-to-backup", "--throttle", "1MiB/s", "--sync-groups")
    assert orders(*given).err == (
        f"replica orders-to-backup: orders → {backup}, at most 1.00 MiB/s, with committed positions\n"
    )
    assert orders("replica", "edit", "orders-to-backup", "--unlimited", "--json").json["sync_groups"] is True


def test_a_stream_has_a_line_for_each_topic(orders, backup):
    orders("stream", "create", "web")
    orders("replica", "add", "web", "--to", backup)
    assert [(found["topic"], found["state"]) for found in statuses(orders)] == [(None, "waiting")]
    assert "(none yet)" in orders("replica", "status").out
    orders("topic", "create", "web/clicks")
    orders("topic", "create", "web/views")
    assert [found["topic"] for found in statuses(orders, "web-to-backup")] == ["web/clicks", "web/views"]


def test_a_target_that_cannot_be_read_is_said_beside_the_others(orders, backup, tmp_path):
    orders("replica", "add", "orders", "--to", backup)
    orders("replica", "add", "orders", "--to", tmp_path / "second")
    backup.mkdir()
    (backup / "letter.txt").write_text("of another program")
    first, second = statuses(orders)
    assert "is not a warehouse" in first["error"] and first["lag_records"] is None
    assert second["error"] is None and second["lag_records"] == 6


@pytest.mark.parametrize("verb", ["edit --unlimited", "pause", "resume", "remove", "status"])
def test_an_unknown_replica_gets_the_nearest_name(orders, backup, verb):
    name, *flags = verb.split()
    assert orders.error("replica", name, "orders-to-backap", *flags).endswith(
        "(define one with `lithify replica add TOPIC --to DIR`)"
    )
    orders("replica", "add", "orders", "--to", backup)
    error = orders.error("replica", name, "orders-to-backap", *flags)
    assert error == "there is no replica orders-to-backap (did you mean orders-to-backup?)"


def test_an_unknown_source_gets_the_nearest_name(orders, backup):
    assert orders.error("replica", "add", "order", "--to", backup) == (
        "there is no topic or stream order (did you mean orders?)"
    )


def test_a_stream_and_a_topic_of_one_name(orders, backup):
    orders("topic", "create", "orders/eu")
    assert "write orders/ for the stream, default/orders for the topic" in orders.error(
        "replica", "add", "orders", "--to", backup
    )
    assert orders("replica", "add", "orders/", "--to", backup, "--name", "s", "--json").json["source"] == "orders"
    assert (
        orders("replica", "add", "default/orders", "--to", backup, "--name", "t", "--json").json["source"] == "orders"
    )
    assert [found["topic"] for found in statuses(orders)] == ["orders/eu", "orders"]


def test_refused_targets(orders, backup, tmp_path):
    def refused(*arguments):
        return orders.error("replica", "add", "orders", *arguments)

    assert "is the warehouse of orders itself" in refused("--to", orders.warehouse)
    for around in (orders.warehouse / "default" / "backup", orders.warehouse.parent):
        assert "is inside the other" in refused("--to", around)
    secret = refused("--to", "postgresql://me:secret@host/db")
    assert "secret" not in secret and "describe the catalog in .pyiceberg.yaml" in secret
    assert refused("--to", "backap").endswith("(write a directory as ./backap)")
    assert "is not a replica: it must be" in refused("--to", backup, "--name", "a b")
    assert "not begin with '-'" in refused("--to", backup, "--name", "-a")
    orders("replica", "add", "orders", "--to", backup)
    assert "copies orders to" in refused("--to", backup, "--name", "again")
    other = refused("--to", tmp_path / "third", "--name", "orders-to-backup")
    assert other == "the replica orders-to-backup already exists (choose another --name)"


def test_a_topic_of_the_targets_own_is_not_overwritten(orders, backup):
    package.open(str(backup)).create_topic("orders")
    assert "the target has a topic of that name that is not a replica" in orders.error(
        "replica", "add", "orders", "--to", backup
    )


def test_loops_are_refused_however_long(orders, tmp_path):
    """warehouse → b → c, and c → warehouse is the loop, or b → warehouse."""
    places = [orders.warehouse, tmp_path / "b", tmp_path / "c"]
    for place in places[1:]:
        package.open(str(place)).create_topic("orders")
    replicas = [package.open(str(place)).replicas() for place in places]
    with pytest.raises(package.RefusedError, match="not a replica"):
        replicas[0].add("orders", str(places[1]))
    for place in places[1:]:
        package.open(str(place)).delete_topic("orders")
    replicas[0].add("orders", str(places[1]))
    copied(orders, places[1])
    replicas[1].add("orders", str(places[2]))
    mirror(open_warehouse(str(places[1])), open_warehouse(str(places[2])), ORDERS, MirrorRequest("b"))
    with pytest.raises(package.RefusedError, match=r"a loop: orders would return from /.*/b by way of"):
        replicas[2].add("orders", str(places[0]))
    with pytest.raises(package.RefusedError, match=r"a loop: orders would return from /"):
        replicas[1].add("orders", str(places[0]))


def test_two_sources_of_one_topic_are_refused_where_the_database_is_shared(orders, backup, tmp_path):
    url = ("--coordination-url", f"sqlite:///{tmp_path}/shared.db")
    orders("replica", "add", "orders", "--to", backup, *url)
    other = tmp_path / "other"
    package.open(str(other)).create_topic("orders")
    refused = orders.error("replica", "add", "orders", "--to", backup, "--warehouse", other, *url)
    assert "by its replica orders-to-backup (choose another target: a replica has one source)" in refused


def test_a_catalog_without_a_database_needs_a_url(orders, backup, monkeypatch):
    monkeypatch.setattr("lithify.api.wiring.shared_place.database_of", lambda _: None)
    assert "replicas need an SQL database" in orders.error("replica", "add", "orders", "--to", backup)


@pytest.mark.parametrize("url", [True, False])
def test_a_source_that_is_not_mounted_is_not_said_to_have_lost_its_topics(orders, backup, tmp_path, url):
    more = ["--coordination-url", f"sqlite:///{tmp_path}/replicas.db"] if url else []
    orders("replica", "add", "orders", "--to", backup, *more)
    orders("replica", "run", "--once", *more)
    orders.warehouse.rename(tmp_path / "away")
    for mounted in (False, True):
        if mounted:
            orders.warehouse.mkdir()
        for verb in (["status"], ["run", "--once"]):
            said = orders.error("replica", *verb, *more, code=1)
            assert f"file://{orders.warehouse}: there is no warehouse (check that its disk is mounted" in said


def test_run_once_copies_what_is_lacking(orders, backup):
    orders("replica", "add", "orders", "--to", backup)
    events = orders("replica", "run", "--once", "--json").lines
    assert [event["event"] for event in events] == ["started", "copying", "copying", "copied", "stopped"]
    copied = events[3]
    assert (copied["replica"], copied["topic"], copied["version"]) == ("orders-to-backup", "orders", 2)
    assert (copied["files_copied"], copied["files_reused"]) == (2, 0)
    assert [event["event"] for event in orders("replica", "run", "--once", "--json").lines] == ["started", "stopped"]
    (found,) = statuses(orders)
    assert (found["replica_version"], found["lag_ms"]) == (2, 0)
    assert values(orders, backup) == values(orders)


def values(lithify, *warehouse):
    flags = ["--warehouse", *warehouse] if warehouse else []
    return [record["value"] for record in lithify("consume", "orders", *flags).lines]


def test_run_once_as_text(orders, backup, masked):
    orders("replica", "add", "orders", "--to", backup)
    shown = masked(orders("replica", "run", "--once", "--id", "d1").err)
    assert shown.splitlines() == [
        "TIME  started  daemon d1, 4 threads for each target, checks every SPENT, leases of SPENT",
        "TIME  copying  orders-to-backup, orders: SIZE of SIZE",
        "TIME  copying  orders-to-backup, orders: SIZE of SIZE",
        "TIME  copied  orders-to-backup, orders: version 2: 2 files, SIZE, in SPENT",
        "TIME  stopped  every replica has caught up, is paused or has failed",
    ]


def test_run_once_ends_with_1_if_a_replica_failed(orders, backup, tmp_path):
    orders("replica", "add", "orders", "--to", backup)
    orders("replica", "add", "orders", "--to", tmp_path / "second")
    orders("replica", "add", "default/", "--to", tmp_path / "third", "--paused")
    backup.mkdir()
    (backup / "letter.txt").write_text("of another program")
    events = orders("replica", "run", "--once", "--json", code=1).lines
    (trouble,) = [event for event in events if event["event"] == "trouble"]
    assert "is not a warehouse" in trouble["error"]
    failed, second, paused = sorted(statuses(orders), key=lambda found: found["target"])
    assert (failed["state"], second["replica_version"], paused["state"]) == ("failed", 2, "paused")
    assert failed["next_retry_at"] is not None and "is not a warehouse" in failed["error"]
    (backup / "letter.txt").unlink()
    orders("replica", "run", "--once", "--json")
    assert [found["replica_version"] for found in statuses(orders)] == [None, 2, 2]


def test_a_stream_with_topics_that_come_and_go(orders, backup):
    orders("replica", "add", "default/", "--to", backup)
    orders("replica", "run", "--once")
    orders("topic", "create", "later", "--partitions", 2)
    feed(orders, "later")
    orders("replica", "run", "--once")
    assert [(found["topic"], found["replica_version"]) for found in statuses(orders)] == [("later", 2), ("orders", 2)]
    orders("topic", "delete", "later", "--yes")
    orders("replica", "run", "--once", code=1)
    gone, _ = statuses(orders)
    assert (gone["topic"], gone["state"], gone["source_version"], gone["replica_version"]) == (
        "later",
        "failed",
        None,
        2,
    )
    assert "the topic no longer exists at the source; the copied records remain" in gone["error"]
    orders("replica", "promote", "later", "--yes", "--warehouse", backup)
    orders("replica", "run", "--once")
    assert [found["topic"] for found in statuses(orders)] == ["orders"]


def test_promote_and_go_on(orders, backup):
    orders("replica", "add", "orders", "--to", backup)
    orders("replica", "run", "--once")
    at = ("--warehouse", backup)
    warned = orders("replica", "promote", "orders", *at, code=2).err
    assert "it remains a replica of the topic in file://" in warned and "--yes makes it a topic of its own" in warned
    promoted = orders("replica", "promote", "orders", "--yes", *at).err
    assert promoted.startswith("orders: a topic of its own since its version 3; it has everything up to version 2 of")
    feed_at = orders("produce", "orders", *at, stdin='{"key":"new","value":"6","partition":0}\n', code=0)
    assert "1 record written" in feed_at.err
    assert len(values(orders, backup)) == 7
    assert "it is not a replica" in orders.error("replica", "promote", "orders", *at)
    events = orders("replica", "run", "--once", "--json", code=1).lines
    (failed,) = [event for event in events if event["event"] == "failed"]
    assert "a topic of that name that is not a replica" in failed["error"]


def test_verify_against_the_source_and_by_itself(orders, backup, masked):
    orders("replica", "add", "orders", "--to", backup)
    orders("replica", "run", "--once")
    clean = orders("replica", "verify", "orders-to-backup")
    assert (clean.out, masked(clean.err)) == (
        "",
        "orders: clean: 6 records in 2 files, version 2 against version 2 of its source, SIZE read in SPENT\n",
    )
    alone = orders("replica", "verify", "orders", "--warehouse", backup, "--json").json
    assert (alone["clean"], alone["replica_version"], alone["source_version"], alone["files"]) == (True, 2, None, 2)
    (first, *_) = sorted(backup.rglob("*-of-*.parquet"))
    first.write_bytes(first.read_bytes()[:-1] + b"x")
    found = orders("replica", "verify", "orders-to-backup", code=3)
    assert "orders-0: file_damaged" in found.out and "NOT CLEAN" in found.err
    assert "there is no replica orderz" in orders.error("replica", "verify", "orderz")


@pytest.mark.parametrize("what", ["orders", "default/"])
def test_verify_of_what_the_source_has_no_more_is_by_itself(orders, backup, what):
    orders("replica", "add", what, "--to", backup, "--name", "r")
    orders("replica", "run", "--once")
    orders("topic", "delete", "orders", "--yes")
    assert "orders: clean: 6 records in 2 files, version 2 by itself" in orders("replica", "verify", "r").err
    orders("topic", "delete", "orders", "--yes", "--warehouse", backup)
    gone = orders("replica", "verify", "r", code=2 if what == "orders" else 3)
    assert "orders: no such topic" in gone.err + gone.out


def test_info_of_a_replica_says_what_it_is_a_replica_of(orders, backup):
    orders("replica", "add", "orders", "--to", backup)
    copied(orders, backup)
    source = scope_of(open_warehouse(str(orders.warehouse))).where
    version = orders("topic", "info", "orders", "--json").json["version"]
    info = orders("topic", "info", "orders", "--warehouse", backup, "--json").json
    assert (info["source"], info["source_version"]) == (source, version)
    text = "".join(orders("topic", "info", "orders", "--warehouse", backup).out.split())  # a path may be broken
    assert f"replicaofordersin{source},version{version}" in text
    assert orders("topic", "info", "orders", "--json").json["source"] is None


def test_a_target_that_is_a_catalog(orders, tmp_path, one_process):
    """PyIceberg reads its configuration when it is imported."""
    (tmp_path / "site").mkdir()
    described = {
        "PYICEBERG_CATALOG__PROD__TYPE": "sql",
        "PYICEBERG_CATALOG__PROD__URI": f"sqlite:///{tmp_path}/prod.db",
        "PYICEBERG_CATALOG__PROD__WAREHOUSE": f"file://{tmp_path}/site",
    }
    mistyped, *done, status = one_process(
        ("replica", "add", "orders", "--to", "prid"),
        ("replica", "add", "orders", "--to", "prod"),
        ("replica", "run", "--once"),
        ("replica", "status", "--json"),
        **described,
    )
    assert mistyped.returncode == 2 and "(did you mean prod?)" in mistyped.stderr
    assert [one.returncode for one in done] == [0, 0]
    (found,) = map(json.loads, status.stdout.splitlines())
    assert (found["name"], found["target"], found["lag_ms"]) == ("orders-to-prod", "prod", 0)
