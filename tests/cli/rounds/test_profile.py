"""`lithify compact --profile DIR`: its files, what it says, and folders and disks that cannot take them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lithify.api import profiles

pytestmark = pytest.mark.spark


@pytest.fixture
def orders(lithify):
    lithify("topic", "create", "orders")
    lithify("produce", "orders", stdin='{"key":"a","value":"1"}\n{"key":"a","value":"2"}\n')
    return lithify


def test_a_round_writes_its_profile_to_a_new_folder(orders, tmp_path):
    folder = tmp_path / "deep" / "profile"
    done = orders("compact", "orders", "--profile", folder)
    (said,) = (line for line in done.err.splitlines() if "profile" in line)
    assert said == f"{folder}: the profile has 2 of 2 tasks; open trace.json in a trace viewer such as Perfetto"
    rows = [json.loads(line) for line in (folder / "profile.jsonl").read_text().splitlines()]
    phases = [row["name"] for row in rows if row["of"] == "phase"]
    assert phases == ["plan", "session", "key_pass", "rewrite", "commit"]
    assert [(row["kind"], row["log"]) for row in rows if row["of"] == "task"] == [
        ("range", "orders-0"),
        ("rewrite", "orders-0"),
    ]
    assert len(json.loads((folder / "trace.json").read_text())["traceEvents"]) == len(phases) + 2 + 2


def test_a_round_without_work_has_a_profile_of_its_phases(orders, tmp_path):
    orders("compact", "orders")
    again = orders("compact", "orders", "--profile", tmp_path / "p", "--json")
    assert not again.json["changed"]
    assert json.loads(again.err)["event"] == "profile"
    assert len((tmp_path / "p" / "profile.jsonl").read_text().splitlines()) > 1


def test_a_plan_has_no_profile(orders, tmp_path):
    folder = tmp_path / "p"
    assert "--plan runs no round, so --profile has nothing to record" in orders.error(
        "compact", "orders", "--plan", "--profile", folder
    )
    assert not folder.exists()


def test_a_folder_that_cannot_take_it_stops_the_round_before_it_begins(orders, tmp_path):
    (tmp_path / "file").touch()
    assert "File exists" in orders.error("compact", "orders", "--profile", tmp_path / "file")
    assert "the folder is not empty" in orders.error("compact", "orders", "--profile", tmp_path)
    assert len(orders("consume", "orders").lines) == 2


def test_a_disk_that_fills_up_does_not_fail_the_round(orders, tmp_path, monkeypatch):
    checked = profiles.profile_folder

    def then_full(folder: str) -> Path:
        path = checked(folder)
        (path / profiles.TRACE).symlink_to("/dev/full")
        return path

    monkeypatch.setattr(profiles, "profile_folder", then_full)
    done = orders("compact", "orders", "--profile", tmp_path / "p")
    assert f"{tmp_path / 'p'}: the profile cannot be written: No space left on device" in done.err.splitlines()
    assert len(orders("consume", "orders").lines) == 1
    assert list((tmp_path / "p").iterdir()) == []
