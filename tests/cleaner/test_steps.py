"""What a cleaner does, step by step (C28, C29, C31)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from lithify.daemons.cleaner.cleaner import Waits
from lithify.errors import DamagedError, EngineError, UnknownVersionError, WarehouseError
from lithify.model.failure import LogFailure
from lithify.model.names import LogId
from lithify.reports.events import EventKind
from lithify.service.change.alter import alter
from lithify.service.documents import failures_of, put_failures
from support.topics.cleaner_lake import INTERVAL_MS, LEASE_MS, CleanerLake

DAY_MS = 86_400_000


@pytest.fixture
def lake() -> CleanerLake:
    return CleanerLake()


def topics_of(events, kind=EventKind.ROUND):
    return [event.topic for event in events if event.kind is kind]


def test_what_is_due_is_compacted_and_what_is_not_is_left(lake):
    due, clean = lake.topic("due"), lake.topic("clean", min_cleanable_dirty_ratio=1)
    for topic in (due, clean):
        lake.append(topic, "a=1 b=1 a=2")
    events = lake.cleaner().work()
    assert topics_of(events) == ["due"]
    assert (lake.text(due), lake.text(clean)) == ("b=1 a=2", "a=1 b=1 a=2")


def test_with_nothing_to_do_it_waits_for_the_next_look(lake):
    lake.topic("empty")
    alpha = lake.cleaner()
    assert alpha.work() == []
    step = alpha.cleaner.step()
    assert isinstance(step, Waits)
    assert 0 < step.ms <= INTERVAL_MS


def test_new_records_are_found_with_the_next_look(lake):
    topic, alpha = lake.topic("orders"), lake.cleaner()
    alpha.work()
    lake.append(topic, "a=1 a=2")
    assert alpha.work() == []
    lake.wait()
    assert topics_of(alpha.work()) == ["orders"]


def test_many_small_topics_are_one_job(lake):
    for number in range(30):
        lake.append(lake.topic(f"t{number:02}"), "a=1 a=2")
    events = lake.cleaner().work()
    assert len(topics_of(events)) == 30
    assert [len(job) for job in lake.engine.jobs] == [30]


def test_only_the_logs_that_are_due_are_compacted(lake):
    topic = lake.topic("orders", partitions=3)
    lake.append(topic, "a=1 a=2", partition=1)
    lake.cleaner().work()
    assert lake.engine.jobs == [[LogId(topic, 1)]]


def test_a_deadline_makes_a_log_due_whatever_its_ratio(lake):
    """C28, C29."""
    topic = lake.topic("orders", min_cleanable_dirty_ratio=1, max_compaction_lag_ms=60_000)
    alpha = lake.cleaner()
    lake.append(topic, "a=1 a=2")
    assert topics_of(alpha.work()) == []
    lake.wait(60_001)
    (event,) = [event for event in alpha.work() if event.kind is EventKind.ROUND]
    assert event.facts["overdue_ms"] == 1


def test_the_most_overdue_log_of_a_topic_is_in_the_first_job(lake):
    """C29: also where the topic is shared by several cleaners, or by threads of one."""
    topic = lake.topic("orders", partitions=300, max_compaction_lag_ms=60_000)
    for partition in range(300):
        overdue_ms = {299: 9, 298: 5}.get(partition, 0) * 60_000
        lake.append(topic, "a=1 a=2", partition, age_ms=overdue_ms)
    lake.cleaner(threads=2).work()
    assert len(lake.engine.jobs) > 1
    assert lake.engine.jobs[0][:2] == [LogId(topic, 299), LogId(topic, 298)]


def test_tombstones_go_with_no_new_data(lake):
    """C21."""
    topic, alpha = lake.topic("orders", delete_retention_ms=60_000), lake.cleaner()
    lake.append(topic, "a=1 b=1 a=-")
    alpha.work()
    assert lake.text(topic) == "b=1 a=-"
    lake.wait(59_000)
    alpha.work()
    assert lake.text(topic) == "b=1 a=-"
    lake.wait(15_000)
    alpha.work()
    assert lake.text(topic) == "b=1"


def test_whole_segments_past_retention_go_without_a_round(lake):
    """C24."""
    topic, alpha = lake.topic("orders", cleanup_policy="delete", retention_ms=60_000), lake.cleaner()
    lake.append(topic, "a=1")
    lake.wait(30_000)
    lake.append(topic, "a=2")
    alpha.work()
    lake.wait(31_000)
    (event,) = alpha.work()[1:]
    assert (event.kind, event.facts["records"]) == (EventKind.RETAINED, 1)
    assert lake.text(topic) == "a=2"
    assert lake.engine.jobs == []


def test_retention_that_fails_is_reported_and_waits_whatever_the_error(lake, monkeypatch):
    """C31: also one that a look would leave to the next look."""
    topic, alpha = lake.topic("orders", cleanup_policy="delete", retention_ms=60_000), lake.cleaner()
    lake.append(topic, "a=1", age_ms=61_000)

    def fail(*_, **__):
        raise UnknownVersionError("orders: version 2 is not retained")

    monkeypatch.setattr("lithify.daemons.cleaner.chores.retain", fail)
    alpha.work()
    assert [event.facts["error"] for event in alpha.told(EventKind.TROUBLE)] == ["orders: version 2 is not retained"]
    assert alpha.cleaner.finder.look(lake.clock.now_ms()).work == ()


def test_retention_that_fails_is_tried_ever_more_seldom_until_it_succeeds(lake, monkeypatch):
    topic, alpha = lake.topic("orders", cleanup_policy="delete", retention_ms=60_000), lake.cleaner()
    lake.append(topic, "a=1", age_ms=61_000)

    def fail(*_):
        raise DamagedError("the file is missing")

    def tried_ms(for_ms):
        begun_ms = lake.clock.now_ms()
        while lake.clock.now_ms() < begun_ms + for_ms:
            alpha.work()
            lake.wait(1_000)
        return [event.time_ms - begun_ms for event in alpha.told(EventKind.TROUBLE) if event.time_ms >= begun_ms]

    with monkeypatch.context() as patched:
        patched.setattr("lithify.daemons.cleaner.chores.retain", fail)
        first, second, third, fourth = tried_ms(150_000)
        assert first < second - first < third - second < fourth - third
    assert tried_ms(150_000) == []
    assert alpha.told(EventKind.RETAINED)
    lake.append(topic, "a=2", age_ms=61_000)
    with monkeypatch.context() as patched:
        patched.setattr("lithify.daemons.cleaner.chores.retain", fail)
        again, soon = tried_ms(40_000)
        assert soon - again == pytest.approx(second - first, abs=5_000)


def test_old_versions_and_their_files_go_by_the_clock(lake):
    """C6, C7: also of a topic in which nothing happens any more."""
    topic, alpha = lake.topic("orders", versions_retention_ms=3_600_000), lake.cleaner()
    lake.append(topic, "a=1 a=2")
    alpha.work()
    assert [kept.version for kept in lake.warehouse.store.versions(topic)] == [2]
    before = {file.path for file in lake.warehouse.store.stored_files(lake.state(topic))}
    for _ in range(8):
        lake.wait(DAY_MS // 8 + INTERVAL_MS)
        alpha.work()
    assert lake.warehouse.store.versions(topic) == ()
    assert len(alpha.told(EventKind.EXPIRED)) == 1
    assert len(alpha.told(EventKind.SWEPT)) == 1
    after = {file.path for file in lake.warehouse.store.stored_files(lake.state(topic))}
    assert after < before


@pytest.mark.parametrize("hours", [1, 5, 10, 24, 60])
def test_a_version_of_a_topic_in_which_nothing_happens_expires_at_its_time(hours, lake):
    """C7: however seldom it is visited."""
    topic, alpha = lake.topic("orders", versions_retention_ms=hours * 3_600_000), lake.cleaner()
    lake.append(topic, "a=1 a=2")
    alpha.work()
    (kept,) = lake.warehouse.store.versions(topic)
    while lake.clock.now_ms() < kept.closed_ms + hours * 3_600_000:
        assert not alpha.told(EventKind.EXPIRED)
        lake.wait(5 * 60_000)
        alpha.work()
    assert alpha.told(EventKind.EXPIRED)


def test_a_topic_in_which_nothing_happens_is_swept_ever_more_seldom(lake):
    lake.topic("quiet")
    alpha = lake.cleaner(sweep_interval_ms=60_000)
    swept: list[int] = []
    real = lake.warehouse.store.stored_files

    def noting(state):
        swept.append(lake.clock.now_ms())
        return real(state)

    lake.warehouse.store.stored_files = noting
    for _ in range(40):
        alpha.work()
        lake.wait(60_000)
    gaps = [later - earlier for earlier, later in pairwise(swept)]
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 8 * gaps[0]


def test_changed_settings_count_with_the_next_look(lake):
    """C43: it takes effect without a restart of the cleaner."""
    topic, alpha = lake.topic("orders", min_cleanable_dirty_ratio=1), lake.cleaner()
    lake.append(topic, "a=1 a=2")
    assert topics_of(alpha.work()) == []
    alter(lake.warehouse, topic, {"min.cleanable.dirty.ratio": 0.5})
    lake.wait()
    assert topics_of(alpha.work()) == ["orders"]


def test_topics_that_come_and_go_are_followed(lake):
    first, alpha = lake.topic("first"), lake.cleaner()
    lake.append(first, "a=1 a=2")
    alpha.work()
    lake.warehouse.store.drop_topic(first)
    second = lake.topic("second")
    lake.append(second, "a=1 a=2")
    lake.wait()
    assert topics_of(alpha.work()) == ["second"]
    assert set(alpha.cleaner.finder.watch.known) == {second}


def test_a_topic_deleted_under_its_round_is_no_failure(lake):
    topic, alpha = lake.topic("orders"), lake.cleaner()
    lake.append(topic, "a=1 a=2")
    alpha.renew()
    alpha.cleaner.step()  # it has seen the topic
    lake.warehouse.store.drop_topic(topic)
    alpha.work()
    assert [event.kind for event in alpha.events] == [EventKind.LOOKED]


def test_a_topic_that_is_committed_to_while_it_is_looked_at_is_no_trouble(lake):
    """As a store knows it that keeps the newest version only, and finds its manifests when they are asked for."""
    topic = lake.topic("busy")
    lake.append(topic, "a=1 a=2")

    class NewestOnly:
        def __getattr__(self, name):
            return getattr(lake.warehouse.store, name)

        def load_at(self, name, token):
            loaded = lake.warehouse.store.load_at(name, token)
            lake.append(topic, "a=3")
            return loaded

        def segments(self, state, partitions=None):
            if state != lake.state(topic):
                raise UnknownVersionError(f"version {state.version} is not retained")
            return lake.warehouse.store.segments(state, partitions)

    events = lake.cleaner(warehouse=replace(lake.warehouse, store=NewestOnly())).work()
    assert [event.kind for event in events] == [EventKind.LOOKED, EventKind.ROUND]
    assert lake.text(topic) == "a=3"


def test_a_topic_deleted_while_it_is_looked_at_is_no_failure(lake, monkeypatch):
    topic, alpha = lake.topic("orders"), lake.cleaner()
    lake.append(topic, "a=1 a=2")

    def gone(state, partitions=None):
        if topic in lake.warehouse.store.topics():
            lake.warehouse.store.drop_topic(topic)
        raise DamagedError("snap-1.avro: the file is missing")

    monkeypatch.setattr(lake.warehouse.store, "segments", gone)
    alpha.work()
    assert alpha.events == []


class TestFailures:
    """C31."""

    def test_a_log_that_fails_leaves_the_others_alone(self, lake):
        good, bad = lake.topic("good"), lake.topic("bad", partitions=2)
        lake.append(good, "a=1 a=2")
        for partition in (0, 1):
            lake.append(bad, "a=1 a=2", partition)
        lake.engine.fails[LogId(bad, 1)] = DamagedError("data/1.parquet: the file is missing")
        alpha = lake.cleaner()
        alpha.work()
        assert (lake.text(good), lake.text(bad, 0), lake.text(bad, 1)) == ("a=2", "a=2", "a=1 a=2")
        (failed,) = alpha.told(EventKind.FAILED)
        assert (failed.topic, failed.facts["partition"], failed.facts["failures"]) == ("bad", 1, 1)
        assert "data/1.parquet" in failed.facts["error"]

    def test_it_is_tried_again_ever_more_seldom_and_then_quarantined(self, lake):
        topic, alpha = lake.topic("bad"), lake.cleaner()
        lake.append(topic, "a=1 a=2")
        lake.engine.fails[LogId(topic, 0)] = DamagedError("the file is missing")
        tried = []
        for _ in range(600):
            jobs = len(lake.engine.jobs)
            alpha.work()
            if len(lake.engine.jobs) > jobs:
                tried.append(lake.clock.now_ms())
            lake.wait()
        gaps = [later - earlier for earlier, later in pairwise(tried)]
        assert len(tried) == 8
        assert all(later >= 1.5 * earlier for earlier, later in pairwise(gaps))
        assert len(alpha.told(EventKind.QUARANTINED)) == 1
        assert failures_of(lake.warehouse.store, lake.state(topic))[0].quarantined

    def test_the_quarantine_outlives_the_cleaner_and_ends_when_it_is_released(self, lake):
        topic = lake.topic("bad")
        lake.append(topic, "a=1 a=2")
        lake.engine.fails[LogId(topic, 0)] = DamagedError("the file is missing")
        alpha = lake.cleaner()
        for _ in range(600):
            alpha.work()
            lake.wait()
        jobs = len(lake.engine.jobs)
        lake.engine.fails.clear()
        beta = lake.cleaner("beta")
        beta.work()
        assert len(lake.engine.jobs) == jobs
        put_failures(lake.warehouse.store, lake.state(topic), {})
        lake.wait()
        assert topics_of(beta.work()) == ["bad"]

    def test_what_gets_through_is_forgotten(self, lake):
        topic, alpha = lake.topic("bad"), lake.cleaner()
        lake.append(topic, "a=1 a=2")
        lake.engine.fails[LogId(topic, 0)] = DamagedError("the file is missing")
        alpha.work()
        lake.engine.fails.clear()
        lake.wait(30_000)
        assert topics_of(alpha.work()) == ["bad"]
        assert failures_of(lake.warehouse.store, lake.state(topic)) == {}

    def test_what_failed_twice_is_tried_alone(self, lake):
        for name in ("a", "b", "c"):
            lake.append(lake.topic(name), "a=1 a=2")
        alpha = lake.cleaner()
        lake.engine.job_fails = EngineError("a Spark job failed: a worker died")
        alpha.work()
        lake.wait(15_000)
        alpha.work()
        lake.engine.job_fails = None
        lake.wait(30_000)
        alpha.work()
        assert [len(job) for job in lake.engine.jobs] == [3, 3, 1, 1, 1]
        assert len(topics_of(alpha.events)) == 3

    def test_a_defect_in_a_run_is_a_failure_of_its_logs(self, lake):
        lake.append(lake.topic("orders"), "a=1 a=2")
        lake.engine.job_fails = ZeroDivisionError("a defect")
        alpha = lake.cleaner()
        alpha.work()
        assert "ZeroDivisionError" in alpha.told(EventKind.FAILED)[0].facts["error"]

    def test_failures_that_cannot_be_written_are_kept_in_mind(self, lake, monkeypatch):
        topic, alpha = lake.topic("bad"), lake.cleaner()
        lake.append(topic, "a=1 a=2")
        lake.engine.fails[LogId(topic, 0)] = DamagedError("the file is missing")

        def full(*_):
            raise WarehouseError("no space is left")

        monkeypatch.setattr(lake.warehouse.store, "put_document", full)
        for _ in range(20):
            alpha.work()
            lake.wait(1_000)
        assert len(lake.engine.jobs) == 2

    @pytest.mark.parametrize("method", ["get_document", "put_document"])
    def test_one_failed_read_or_write_does_not_reset_the_count(self, lake, monkeypatch, method):
        topic, alpha = lake.topic("bad"), lake.cleaner()
        lake.append(topic, "a=1 a=2")
        put_failures(lake.warehouse.store, lake.state(topic), {0: LogFailure(6, 5, 9, 0, "the file is missing")})
        lake.engine.fails[LogId(topic, 0)] = DamagedError("the file is missing")

        def away(*_):
            raise WarehouseError("s3://lake cannot be reached")

        with monkeypatch.context() as patched:
            lake.engine.during = lambda: patched.setattr(lake.warehouse.store, method, away)
            alpha.work()
            lake.engine.during = lambda: None
        lake.wait(3_600_000)
        alpha.work()
        (stored,) = failures_of(lake.warehouse.store, lake.state(topic)).values()
        assert (stored.failures, stored.first_ms, stored.quarantined) == (8, 5, True)

    def test_failures_that_were_written_are_no_longer_kept_in_mind(self, lake):
        topic, alpha = lake.topic("bad"), lake.cleaner()
        lake.append(topic, "a=1 a=2")
        lake.engine.fails[LogId(topic, 0)] = DamagedError("the file is missing")
        alpha.work()
        assert alpha.told(EventKind.FAILED)
        assert alpha.cleaner.rounds.failures._unwritten == {}

    def test_what_others_stored_is_not_forgotten_for_what_could_not_be_read_or_written(self, lake, monkeypatch):
        topic, alpha = lake.topic("bad", 3), lake.cleaner()
        quarantined = LogFailure(8, 0, 0, 0, "the file is missing", quarantined=True)
        put_failures(lake.warehouse.store, lake.state(topic), {2: quarantined})
        for partition in range(3):
            lake.append(topic, "a=1 a=2", partition)
        lake.engine.fails[LogId(topic, 0)] = DamagedError("the file is missing")

        def away(*_):
            raise WarehouseError("s3://lake cannot be reached")

        for method in ("get_document", "put_document"):
            with monkeypatch.context() as patched:
                patched.setattr(lake.warehouse.store, method, away)
                for _ in range(20):
                    alpha.work()
                    lake.wait(10_000)
        lake.wait(3_600_000)
        alpha.work()
        stored = failures_of(lake.warehouse.store, lake.state(topic))
        assert stored[2] == quarantined
        assert stored[0].failures > 1
        assert 1 not in stored
        assert lake.text(topic, 1) == "a=2"
        assert {log.partition for job in lake.engine.jobs for log in job} == {0, 1}

    def test_stored_failures_that_are_damaged_are_reported_and_stored_again(self, lake, monkeypatch):
        topic, alpha = lake.topic("bad", 2), lake.cleaner()
        for partition in range(2):
            lake.append(topic, "a=1 a=2", partition)
        lake.engine.fails[LogId(topic, 0)] = DamagedError("the file is missing")
        store = lake.warehouse.store
        stored, put = store.get_document, store.put_document

        def damaged(*_):
            raise DamagedError("memory://x/failures: the file is no longer JSON")

        def mended(*given):
            put(*given)
            monkeypatch.setattr(store, "get_document", stored)

        monkeypatch.setattr(store, "get_document", damaged)
        monkeypatch.setattr(store, "put_document", mended)
        alpha.work()
        (told,) = {event.facts["error"] for event in alpha.told(EventKind.TROUBLE)}
        assert "failures: the file no longer lists the failing logs: " in told
        assert set(failures_of(store, lake.state(topic))) == {0}

    def test_a_topic_that_cannot_be_read_waits_and_the_others_go_on(self, lake, monkeypatch):
        lost, good = lake.topic("a-lost"), lake.topic("good")
        lake.append(good, "a=1 a=2")
        load = lake.warehouse.store.load
        tried = []

        def failing(name):
            if name == lost:
                tried.append(lake.clock.now_ms())
                raise DamagedError("a-lost: the table's metadata is missing")
            return load(name)

        monkeypatch.setattr(lake.warehouse.store, "load", failing)
        alpha = lake.cleaner()
        for _ in range(240):
            alpha.work()
            lake.wait()
        assert topics_of(alpha.events) == ["good"]
        assert len(tried) == len(topics_of(alpha.events, EventKind.TROUBLE)) == 9 + 1  # looks, and the first upkeep


class TestSharing:
    """Leases save work, and are not needed for anything else."""

    def test_a_topic_that_another_one_works_on_is_left_to_it(self, lake):
        topic = lake.topic("orders")
        lake.append(topic, "a=1 a=2")
        alpha, beta = lake.cleaner("alpha"), lake.cleaner("beta")
        assert alpha.leases.take([f"{lake.state(topic).identity}/0"])
        assert topics_of(beta.work()) == []
        alpha.leases.release([f"{lake.state(topic).identity}/0"])
        lake.wait()
        alpha.renew()
        assert topics_of(beta.work()) == ["orders"]

    def test_logs_of_a_topic_that_another_one_works_on_are_left_to_it(self, lake):
        topic = lake.topic("orders", partitions=4)
        for partition in range(4):
            lake.append(topic, "a=1 a=2", partition)
        alpha, beta = lake.cleaner("alpha"), lake.cleaner("beta")
        of_alpha = [f"{lake.state(topic).identity}/{partition}" for partition in (0, 2)]
        assert alpha.leases.take(of_alpha)
        beta.work()
        assert [[log.partition for log in job] for job in lake.engine.jobs] == [[1, 3]]
        alpha.leases.release(of_alpha)
        lake.wait()
        alpha.renew()
        beta.work()
        assert [[log.partition for log in job] for job in lake.engine.jobs] == [[1, 3], [0, 2]]

    def test_retention_leaves_logs_to_those_who_work_on_them(self, lake):
        topic = lake.topic("orders", partitions=2, cleanup_policy="delete", retention_ms=60_000)
        for partition in range(2):
            lake.append(topic, "a=1", partition, age_ms=61_000)
        alpha, beta = lake.cleaner("alpha"), lake.cleaner("beta")
        assert alpha.leases.take([f"{lake.state(topic).identity}/0"])
        beta.work()
        assert [log.log_start_offset for log in lake.state(topic).logs] == [0, 1]

    def test_two_that_run_share_the_logs_of_a_large_topic(self, lake, monkeypatch):
        monkeypatch.setattr("lithify.rules.schedule.agenda.SMALL_RECORDS", 1)
        topic = lake.topic("orders", partitions=8)
        for partition in range(8):
            lake.append(topic, "a=1 a=2", partition)
        alpha, beta = lake.cleaner("alpha"), lake.cleaner("beta")
        alpha.leases.register("alpha")
        beta.leases.register("beta")
        alpha.work()
        assert [[log.partition for log in job] for job in lake.engine.jobs] == [[0, 1, 2, 3], [4, 5], [6], [7]]

    def test_two_that_run_get_half_of_the_topics_each_and_one_alone_gets_them_all(self, lake):
        topics = [lake.topic(f"t{number:02}", min_cleanable_dirty_ratio=0) for number in range(30)]
        for topic in topics:
            lake.append(topic, "a=1 a=2")
        alpha, beta = lake.cleaner("alpha"), lake.cleaner("beta")
        alpha.leases.register("alpha")
        beta.leases.register("beta")
        alpha.work()
        assert [len(job) for job in lake.engine.jobs] == [15, 8, 7]
        beta.leases.leave()
        for topic in topics:
            lake.append(topic, "a=3")
        lake.wait()
        alpha.work()
        assert [len(job) for job in lake.engine.jobs[3:]] == [30]

    def test_the_work_of_a_dead_one_is_taken_over_after_its_lease(self, lake):
        topic = lake.topic("orders")
        lake.append(topic, "a=1 a=2")
        alpha, beta = lake.cleaner("alpha"), lake.cleaner("beta")
        alpha.leases.take([f"{lake.state(topic).identity}/0"])
        beta.work()
        for _ in range(LEASE_MS // INTERVAL_MS):
            assert topics_of(beta.events) == []
            lake.wait()
            beta.work()
        lake.wait()
        beta.work()
        assert topics_of(beta.events) == ["orders"]

    def test_a_round_whose_lease_is_lost_is_given_up(self, lake):
        topic = lake.topic("orders")
        lake.append(topic, "a=1 a=2")
        alpha, beta = lake.cleaner("alpha"), lake.cleaner("beta")
        find = lake.engine._real.open_round

        def frozen(logs, limits, run_id, progress):
            lake.engine._real.open_round = find
            beta.leases.observe()
            lake.wait(LEASE_MS + 1)
            beta.work()
            return find(logs, limits, run_id, progress)

        lake.engine._real.open_round = frozen
        alpha.work()
        assert topics_of(beta.events) == ["orders"]
        assert topics_of(alpha.events) == []
        assert topics_of(alpha.events, EventKind.ABANDONED) == ["orders"]
        assert lake.text(topic) == "a=2"
        assert failures_of(lake.warehouse.store, lake.state(topic)) == {}

    def test_what_another_one_has_done_meanwhile_is_not_done_again(self, lake):
        for name in ("a", "b"):
            lake.append(lake.topic(name), "a=1 a=2")
        alpha, beta = lake.cleaner("alpha"), lake.cleaner("beta")
        alpha.renew()
        alpha.cleaner.step()  # both have looked
        beta.work()
        alpha.work()
        assert (topics_of(alpha.events), topics_of(beta.events)) == ([], ["a", "b"])
        assert len(lake.engine.jobs) == 1

    def test_one_of_them_does_the_upkeep(self, lake):
        lake.topic("orders")
        alpha, beta = lake.cleaner("alpha"), lake.cleaner("beta")
        alpha.work()
        beta.work()
        assert [one.leases.holds(one.cleaner.chores.role) for one in (alpha, beta)] == [True, False]

    def test_it_stops_in_the_middle_of_a_round_and_changes_nothing(self, lake):
        topic = lake.topic("orders")
        lake.append(topic, "a=1 a=2")
        alpha = lake.cleaner()
        alpha.stop.gives_up.set()
        alpha.work()
        assert topics_of(alpha.events, EventKind.ABANDONED) == ["orders"]
        assert lake.text(topic) == "a=1 a=2"
        assert failures_of(lake.warehouse.store, lake.state(topic)) == {}


class TestReading:
    """A look reads little."""

    def counted(self, lake, monkeypatch):
        calls = {"load": 0, "segments": 0, "get_document": 0, "view": 0}
        for name in calls:
            real = getattr(lake.warehouse.store, name)

            def call(*args, name=name, real=real, **more):
                calls[name] += 1
                return real(*args, **more)

            monkeypatch.setattr(lake.warehouse.store, name, call)
        return calls

    def test_a_look_at_topics_that_are_clean_opens_no_manifest(self, lake, monkeypatch):
        for number in range(5):
            lake.append(lake.topic(f"t{number}", min_cleanable_dirty_ratio=1), "a=1 a=2")
        calls = self.counted(lake, monkeypatch)
        alpha = lake.cleaner()
        alpha.work()
        assert calls == {"load": 5 + 5, "segments": 0, "get_document": 0, "view": 0}, "a look, and the first upkeep"
        for _ in range(5):
            lake.wait()
            alpha.work()
        assert calls == {"load": 5 + 5, "segments": 0, "get_document": 0, "view": 0}

    def test_where_there_are_no_change_tokens_it_reads_the_metadata_of_each_and_nothing_else(self, lake, monkeypatch):
        for number in range(5):
            lake.append(lake.topic(f"t{number}", cleanup_policy="delete", retention_ms=DAY_MS), "a=1 a=2")
        tokens = lake.warehouse.store.change_tokens
        monkeypatch.setattr(lake.warehouse.store, "change_tokens", lambda: ((name, None) for name, _ in tokens()))
        alpha = lake.cleaner()
        alpha.work()
        calls = self.counted(lake, monkeypatch)
        for _ in range(3):
            lake.wait()
            alpha.work()
        assert calls == {"load": 15, "segments": 0, "get_document": 0, "view": 0}

    def test_what_waits_for_its_turn_is_not_judged_at_every_look(self, lake, monkeypatch):
        topic, alpha = lake.topic("orders"), lake.cleaner()
        lake.append(topic, "a=1 a=2")
        calls = self.counted(lake, monkeypatch)
        alpha.cleaner.finder.look(lake.clock.now_ms())
        lake.wait()
        found = alpha.cleaner.finder.look(lake.clock.now_ms())
        assert [work.name for work in found.work] == [topic]
        assert calls["segments"] == 1

    def test_what_others_work_on_is_not_judged_at_every_look(self, lake, monkeypatch):
        topic, alpha, beta = lake.topic("orders"), lake.cleaner("alpha"), lake.cleaner("beta")
        lake.append(topic, "a=1 a=2")
        alpha.leases.take([f"{lake.state(topic).identity}/0"])
        beta.work()
        calls = self.counted(lake, monkeypatch)
        lake.wait()
        alpha.renew()
        beta.work()
        assert calls["segments"] == 0
        alpha.leases.release([f"{lake.state(topic).identity}/0"])
        lake.wait()
        assert topics_of(beta.work()) == ["orders"]

    def test_a_clock_that_goes_back_makes_it_look_again(self, lake, monkeypatch):
        lake.append(lake.topic("t", min_cleanable_dirty_ratio=1), "a=1 a=2")
        alpha = lake.cleaner()
        alpha.work()
        calls = self.counted(lake, monkeypatch)
        lake.clock.advance(-500_000)
        alpha.cleaner.finder.look(lake.clock.now_ms())
        assert calls["load"] == 1

    def test_what_is_due_and_has_nothing_to_do_rests(self, lake, monkeypatch):
        topic, alpha = lake.topic("orders"), lake.cleaner()
        lake.append(topic, "a=1 a=2")
        monkeypatch.setattr("lithify.service.round.topic_run.LogOutcome.changes", property(lambda _: False))
        for _ in range(20):
            alpha.work()
            lake.wait()
        assert len(lake.engine.jobs) == 1

    def test_a_log_that_has_nothing_to_do_rests_whatever_happens_to_others(self, lake, monkeypatch):
        topic, alpha = lake.topic("orders", partitions=2), lake.cleaner()
        lake.append(topic, "a=1 a=2", 0)
        with monkeypatch.context() as patched:
            patched.setattr("lithify.service.round.topic_run.LogOutcome.changes", property(lambda _: False))
            alpha.work()
        lake.append(topic, "a=1 a=2", 1)
        for _ in range(3):
            lake.wait()
            alpha.work()
        assert [[log.partition for log in job] for job in lake.engine.jobs] == [[0], [1]]
        lake.append(topic, "a=3", 0)
        lake.wait()
        alpha.work()
        assert [log.partition for log in lake.engine.jobs[-1]] == [0]
