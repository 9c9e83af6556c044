"""`lithify repair`: what it prints, asks for and gives to scripts."""

from __future__ import annotations

from pathlib import Path


def a_lost_topic(lithify, *names):
    for name in names:
        lithify("topic", "create", name, "--partitions", 2)
        lithify("produce", name, stdin='{"key":"k","value":"v","partition":0}\n')
    (lithify.warehouse / "catalog.db").unlink()


def test_without_yes_the_plan_is_shown_and_nothing_changed(lithify):
    a_lost_topic(lithify, "orders")
    before = sorted(Path(lithify.warehouse).rglob("*"))

    shown = lithify("repair", "orders", code=2)

    assert shown.out.splitlines()[0] == "orders: the catalog is lost"
    assert shown.out.splitlines()[2:] == [
        "  partition 0: offsets 0 to 1, 1 record",
        "  partition 1: offsets 0 to 0, 0 records",
        "  complete",
    ]
    assert shown.err == (
        "error[Refused]: orders: nothing was repaired (--yes restores version 2 in the catalog, unchanged)\n"
    )
    assert sorted(Path(lithify.warehouse).rglob("*")) == before


def test_scripts_get_the_plan_and_what_was_done(lithify):
    a_lost_topic(lithify, "orders")

    done = lithify("repair", "orders", "--yes", "--json").json

    log = {"partition": 0, "log_start_offset": 0, "log_end_offset": 1, "records": 1}
    assert done["logs"] == [log, {**log, "partition": 1, "log_end_offset": 0, "records": 0}]
    assert (done["topic"], done["trouble"], done["way"]) == ("orders", "the catalog is lost", "register")
    assert (done["repaired"], done["complete"], done["version"], done["notes"]) == (True, True, 2, [])
    assert done["metadata"].startswith(done["location"])
    assert lithify("repair", "orders", "--json").json["way"] == "nothing"


def test_all_topics_are_repaired_at_once(lithify):
    a_lost_topic(lithify, "orders", "eu/customers")

    found = lithify("repair")
    assert found.err == "2 topics can be repaired; run `lithify repair TOPIC --yes`, or `lithify repair --all --yes`\n"
    lithify("repair", "--all", "--yes")

    assert lithify("repair").err == "no topic needs repair\n"
    names = [line.split()[0] for line in lithify("topic", "list").out.splitlines()[1:]]
    assert sorted(names) == ["eu/customers", "orders"]


def test_one_that_cannot_be_repaired_does_not_stop_the_others(lithify):
    a_lost_topic(lithify, "orders", "customers")
    (newest,) = Path(lithify.warehouse).glob("default/orders-*/metadata/00001-*.metadata.json")
    newest.with_name("00001-twin.metadata.json").write_bytes(newest.read_bytes())

    done = lithify("repair", "--all", "--yes", code=1)

    assert "orders: 2 metadata files are equally new" in done.err
    assert "orders: orders:" not in done.err
    assert "customers: version 2 is in the catalog again" in done.err


def test_what_it_cannot_take_is_refused(lithify):
    a_lost_topic(lithify, "orders")
    assert lithify.error("repair", "nope").startswith("nope: neither the catalog nor a folder")
    assert lithify.error("repair", "orders", "--all").startswith("--all repairs every topic")
    assert lithify.error("repair", "--folder", "x").startswith("--folder and --metadata belong to one topic")


def test_the_name_of_a_folder_steers_no_terminal(lithify, tmp_path):
    there = tmp_path / "a\x1b[2J\u202eb"
    lithify("topic", "create", "orders", "--warehouse", there)
    (there / "catalog.db").unlink()

    shown = lithify("repair", "orders", "--warehouse", there, code=2).out

    assert r"a\x1b[2J\u202eb/default/orders-" in shown
    assert "\x1b" not in shown and "\u202e" not in shown
