"""The numbers of a round, in its report and in its plan (C30, C42)."""

from __future__ import annotations

from dataclasses import replace

from lithify.errors import DamagedError
from lithify.reports.rounds.round import Losers
from lithify.rules.compaction.round_report import failed_report, idle_outcome, outcome_report, plan_report
from support.builders import a_log, some_settings
from support.topics.pure_rounds import a_pure_log


def a_log_with_everything():
    """Two clean segments and a dirty one; records go for every reason, the first segment goes whole."""
    log = a_pure_log("below=0 a=1 b=∅ c=∅", "x=5 y=6")
    settings = some_settings(delete_retention_ms=1000, null_key="drop")
    log.round(settings, 0)
    assert [s.path for s in log.segments] == ["s0", "s1"]
    log.draw("a=2 ·=3 d=∅ d=4 e=∅")
    log.move_start(1)
    return log, settings


def test_a_report_accounts_for_every_record():
    """C42."""
    log, settings = a_log_with_everything()
    sizes = [s.size_bytes for s in log.segments]
    outcome = log.round(settings, 1000)
    report = outcome_report(outcome, {"key_pass": 3})
    assert report.losers == Losers(superseded=2, expired_tombstone=2, no_key=1, past_retention=0, below_start=1)
    assert (report.first_dirty_offset, report.first_dirty_offset_after, report.horizon) == (6, 11, 11)
    assert (report.records_in, report.records_out) == (11, 5)  # x y a d e
    assert report.keys == 7  # and b and c, whose tombstones went
    assert (report.tombstones_in, report.tombstones_out, log.state.tombstones) == (4, 1, 1)  # b c d e; e; C19
    assert (report.segments_in, report.segments_kept, report.segments_rewritten) == (3, 1, 1)
    assert (report.segments_merged, report.segments_written) == (0, 1)
    assert report.bytes_in == sum(sizes)
    assert (report.bytes_out, report.bytes_written) == (
        sum(s.size_bytes for s in log.segments),
        log.segments[1].size_bytes,
    )
    assert (report.changed, report.error, report.phases_ms) == (True, None, {"key_pass": 3})


def test_keyless_records_in_segments_that_are_passed_over_are_no_keys():
    """C42, C16."""
    log = a_pure_log("·=1 a=" + "x" * 1000)
    settings = some_settings(null_key="retain", segment_bytes=1024)
    log.round(settings, 0)
    log.draw("z=2")
    outcome = log.round(settings, 0)
    assert outcome.plan.looked_at == ()
    report = outcome_report(outcome, {})
    assert (report.records_out, report.keys) == (3, 2)


def test_an_idle_round_reports_the_log_as_it_is():
    """C41."""
    log = a_log("a=1 | b=2")
    report = outcome_report(idle_outcome(log.plan(log.state(dirty_from=2))), {})
    assert not report.changed
    assert (report.records_in, report.records_out, report.keys, report.losers.total) == (2, 2, 2, 0)
    assert (report.segments_kept, report.bytes_read, report.bytes_written) == (2, 0, 0)


def test_a_failed_log_is_reported_as_it_was():
    """C8, C42."""
    state = a_log("a=1 | b=2").state(dirty_from=1)
    report = failed_report(state, DamagedError("f.parquet: the file is missing", hint="restore it"), {})
    assert report.error == "f.parquet: the file is missing (restore it)"
    assert (report.first_dirty_offset, report.first_dirty_offset_after, report.changed) == (1, 1, False)
    assert (report.records_in, report.records_out) == (2, 2)


def test_a_plan_says_what_the_round_will_not_exceed():
    """C30: segments rewritten, bytes read and bytes written are upper bounds of the run that follows."""
    log, settings = a_log_with_everything()
    planned = plan_report(log.plan(settings, 1000), key_reads=1)
    done = outcome_report(log.round(settings, 1000), {})
    assert planned.horizon == done.horizon
    assert (planned.segments_in, planned.segments_scanned) == (3, 2)  # x and y are passed over
    assert planned.segments_rewritten_at_most >= done.segments_rewritten + done.segments_merged
    assert planned.bytes_read_at_most >= done.bytes_read
    assert planned.bytes_written_at_most >= done.bytes_written
    assert not planned.idle


def test_what_went_unread_is_accounted_for_as_well():
    """C42, C24, C26: by whole segments below S or past retention, before the others are compared."""
    log = a_pure_log("a=1!1", "b=1!1 c=1!1", "a=2!90 b=∅!90 d=1!10")
    log.move_start(1)
    settings = some_settings(cleanup_policy="compact,delete", retention_ms=50)
    planned = plan_report(log.plan(settings, 100), key_reads=1)
    assert (planned.segments_gone, planned.segments_in, planned.records_in) == (2, 1, 3)
    assert (planned.log_start_offset, planned.log_start_offset_after, planned.values_expire_before_ms) == (1, 3, 50)
    report = outcome_report(log.round(settings, 100), {})
    assert report.losers == Losers(past_retention=3, below_start=1)
    assert (report.records_in, report.records_out, report.segments_in) == (6, 2, 3)
    assert (report.log_start_offset, report.log_start_offset_after, report.keys) == (1, 3, 3)


def test_side_by_side_a_report_is_about_the_view():
    """C42, C33: what is trimmed from the backlog is no loser of the round."""
    log = a_pure_log("a=1!1 b=1!1", "a=2!90")
    settings = some_settings(cleanup_policy="compact,delete", retention_ms=50, compaction_mode="side-by-side")
    report = outcome_report(log.round(settings, 100), {})
    assert report.losers == Losers(superseded=1)
    assert (report.records_in, report.records_out, report.log_start_offset_after) == (3, 2, 2)
    log.state = replace(log.state, deleted_below=3, log_start_offset=3, first_dirty_offset=3, round_required="deleted")
    report = outcome_report(log.round(settings, 100), {})
    assert (report.losers, report.records_in, report.records_out) == (Losers(below_start=2), 2, 0)


def test_held_and_unversioned_tombstones_are_reported():
    """C20, C11, C42."""
    log = a_pure_log("a=∅#9 b=1#5 b=∅", "a=1#5")
    header = {"compaction_strategy": "header", "compaction_strategy_header": "v"}
    settings = some_settings(**header, delete_retention_ms=0, min_compaction_lag_bytes=30)
    report = outcome_report(log.round(settings, 0), {})
    assert (report.horizon, report.tombstones_held, report.tombstones_unversioned) == (3, 1, 1)
    assert (report.tombstones_in, report.tombstones_out, report.losers) == (2, 1, Losers(superseded=1))
