"""What tasks are measured to take in rounds that are profiled."""

from __future__ import annotations

from threading import Barrier, Thread

from lithify.ports.profile import Gauges
from lithify.spark.task_meter import TaskMeter


def test_two_threads_that_wait_at_once_wait_no_longer_than_the_task_takes() -> None:
    """One for the read rate, the other for the write rate (C40)."""
    now_s, both_sleep = [100.0], Barrier(2)

    def sleep(seconds: float) -> None:
        if both_sleep.wait() == 0:
            now_s[0] += seconds
        both_sleep.wait()

    meter = TaskMeter(Gauges(epoch_s=lambda: now_s[0], cpu_s=lambda: 0.0), sleep)
    meter.begin()
    threads = [Thread(target=meter.sleep, args=(5.0,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (spent,) = meter.spent("rewrite", 0)
    assert spent.throttled_s == spent.wall_s == 5.0
