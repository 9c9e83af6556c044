"""Puts a cleaner together."""

from __future__ import annotations

from lithify.cleaner.chores import Chores
from lithify.cleaner.cleaner import Cleaner
from lithify.cleaner.events import EventReporter
from lithify.cleaner.failures import Failures
from lithify.cleaner.lease_keeper import LeaseKeeper
from lithify.cleaner.loop import Loop
from lithify.cleaner.options import CleanerOptions, EventListener
from lithify.cleaner.rounds import Rounds
from lithify.cleaner.stop import Stop
from lithify.cleaner.work_finder import WorkFinder
from lithify.ports.engine import RewriteEngine
from lithify.ports.leases import Coordination
from lithify.ports.store import Warehouse


def make_cleaner(
    warehouse: Warehouse,
    engine: RewriteEngine,
    leases: LeaseKeeper,
    options: CleanerOptions,
    stop: Stop,
    listener: EventListener,
) -> Cleaner:
    """A cleaner that takes steps, under leases that a keeper renews."""
    reporter = EventReporter(warehouse.clock, options.cleaner_id, listener)
    failures = Failures(warehouse, reporter.trouble)
    finder = WorkFinder(warehouse.store, failures, reporter)
    rounds = Rounds(warehouse, engine, leases, failures, finder, reporter, options.limits, stop)
    chores = Chores(warehouse, leases, finder, reporter, f"role:upkeep@{options.scope}", options.sweep_interval_ms)
    return Cleaner(warehouse.clock, finder, rounds, chores, reporter, options.interval_ms, options.threads)


def make_loop(
    warehouse: Warehouse,
    engine: RewriteEngine,
    coordination: Coordination,
    options: CleanerOptions,
    listener: EventListener,
) -> Loop:
    """A cleaner with its threads, not started yet."""
    stop = Stop()
    owner = f"{options.cleaner_id}/{warehouse.clock.new_id()}"
    leases = LeaseKeeper(coordination, owner, options.lease_ms, warehouse.clock.monotonic_ms)
    cleaner = make_cleaner(warehouse, engine, leases, options, stop, listener)
    return Loop(cleaner, leases, cleaner.reporter, stop, options, coordination)
