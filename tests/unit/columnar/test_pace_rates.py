"""A task follows the document of rates that came after its run began, and no other (C40)."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from lithify.columnar.files.access import FileAccess
from lithify.columnar.pace import LOOK_SECONDS, FollowedRates, TaskRates, read_rates
from lithify.model.settings.rates import Rates, RatesDocument, RatesNote

ACCESS = FileAccess()


class Moment:
    """A clock that is moved by hand."""

    seconds = 100.0

    def __call__(self):
        return self.seconds

    def pass_a_look(self):
        self.seconds += LOOK_SECONDS


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "rates.json")


def store(path, id_, read=None, write=None):
    Path(path).write_text(json.dumps(RatesDocument(id_, Rates(read, write)).to_json()))


def noted(path):
    return RatesNote(path, read_rates(ACCESS, path).id if Path(path).exists() else None)


def followed(path, moment, *, tasks=4, read=400, write=None):
    given = TaskRates(Rates(read, write), tasks, (noted(path),))
    return FollowedRates(pickle.loads(pickle.dumps(given)), ACCESS, moment)


def test_the_rates_of_the_run_count_until_there_is_a_document(path):
    rates = followed(path, Moment())
    assert (rates.read(), rates.write()) == (100, None)


def test_a_document_that_was_there_before_does_not_count(path):
    store(path, "old", read=8)
    moment = Moment()
    rates = followed(path, moment)
    for _ in range(3):
        assert rates.read() == 100
        moment.pass_a_look()


def test_a_newer_one_counts_and_the_next_one_too(path):
    store(path, "old", read=8)
    moment = Moment()
    rates = followed(path, moment)
    assert rates.read() == 100
    store(path, "new", read=80, write=40)
    moment.pass_a_look()
    assert (rates.read(), rates.write()) == (20, 10)
    store(path, "newest", write=4)
    moment.pass_a_look()
    assert (rates.read(), rates.write()) == (None, 1)


def test_a_task_that_starts_later_knows_at_once(path):
    moment = Moment()
    given = TaskRates(Rates(400), 4, (noted(path),))
    store(path, "new", read=80)
    assert FollowedRates(given, ACCESS, moment).read() == 20


def test_it_looks_no_more_often_than_it_has_to(path):
    looks = []

    class Noting(FileAccess):
        def read(self, path):
            looks.append(path)
            return super().read(path)

    moment = Moment()
    rates = FollowedRates(TaskRates(Rates(), 1, (RatesNote(path, None),)), Noting(), moment)
    for _ in range(100):
        rates.read()
        rates.write()
        moment.seconds += LOOK_SECONDS / 10
    assert len(looks) in {10, 11}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"id": "x"}',
        '{"id": "x", "read_rate_bytes": 0, "write_rate_bytes": null}',
        '{"id": "x", "read_rate_bytes": -5, "write_rate_bytes": null}',
        '{"id": "x", "read_rate_bytes": true, "write_rate_bytes": null}',
        '{"id": "x", "read_rate_bytes": "fast", "write_rate_bytes": null}',
        '{"id": "x", "read_rate_bytes": 1e3, "write_rate_bytes": null}',
        None,
    ],
)
def test_a_look_that_fails_changes_nothing(path, tmp_path, text):
    moment = Moment()
    rates = followed(path, moment)
    store(path, "new", read=80)
    assert rates.read() == 20
    if text is None:
        (tmp_path / "rates.json").unlink()
    else:
        (tmp_path / "rates.json").write_text(text)
    moment.pass_a_look()
    assert rates.read() == 20
    store(path, "newest", read=40)
    moment.pass_a_look()
    assert rates.read() == 10


def test_without_a_place_to_look_the_rates_stay(path):
    store(path, "new", read=80)
    assert FollowedRates(TaskRates(Rates(400), 4, ()), ACCESS, Moment()).read() == 100


@pytest.fixture
def of_cleaners(path, tmp_path):
    """What a cleaner notes, and a place for the number of cleaners."""
    return RatesNote(path, None, str(tmp_path / "cleaners.json"))


def store_shared(path, read, id_="shared"):
    Path(path).write_text(json.dumps(RatesDocument(id_, Rates(read), shared=True).to_json()))


def test_a_rate_that_cleaners_share_is_divided_by_their_number(path, of_cleaners):
    store_shared(path, read=120)
    moment = Moment()
    rates = FollowedRates(TaskRates(Rates(400, 400), 4, (of_cleaners,)), ACCESS, moment)
    assert (rates.read(), rates.write()) == (30, None)
    for cleaners in (3, 2, 1):
        Path(of_cleaners.cleaners_path).write_text(json.dumps({"cleaners": cleaners}))
        moment.pass_a_look()
        assert rates.read() == 120 / 4 / cleaners
    Path(path).write_text(json.dumps(RatesDocument("each", Rates(120), shared=False).to_json()))
    Path(of_cleaners.cleaners_path).write_text(json.dumps({"cleaners": 3}))
    moment.pass_a_look()
    assert rates.read() == 30


@pytest.mark.parametrize("text", ["", "{}", '{"cleaners": 0}', '{"cleaners": true}', '{"cleaners": "2"}', "[]"])
def test_the_last_known_number_of_cleaners_stays(path, of_cleaners, text):
    store_shared(path, read=120)
    Path(of_cleaners.cleaners_path).write_text('{"cleaners": 3}')
    moment = Moment()
    rates = FollowedRates(TaskRates(Rates(), 1, (of_cleaners,)), ACCESS, moment)
    assert rates.read() == 40
    Path(of_cleaners.cleaners_path).write_text(text)
    moment.pass_a_look()
    assert rates.read() == 40


def test_the_rates_of_a_topic_go_no_higher_than_what_the_cleaners_share(path, of_cleaners, tmp_path):
    of_topic = str(tmp_path / "topic.json")
    store_shared(path, read=100)
    moment = Moment()
    rates = FollowedRates(TaskRates(Rates(), 1, (of_cleaners, RatesNote(of_topic, None))), ACCESS, moment)
    for of_the_topic, expected in ((30, 30), (300, 100), (None, 100)):
        store(of_topic, f"{of_the_topic}", read=of_the_topic)
        moment.pass_a_look()
        assert rates.read() == expected
