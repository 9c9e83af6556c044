"""A process that runs standing jobs as a gateway does, and prints their events: `a_gateway.py URL NAME LEASE_MS ...`.

What follows are the arguments of the program before a job's own. It ends by SIGTERM, and by 1 if a job did not.
"""

from __future__ import annotations

import json
import signal
import sys

from lithify.api.wiring.system_clock import SystemClock
from lithify.coordination.leases.gateways.jobs_sql import open_standing_jobs
from lithify.daemons.stop import Stop
from lithify.gateway.standing.options import StandingOptions
from lithify.gateway.standing.standing_jobs import StandingJobs
from lithify.model.formats.warehouse_scope import WarehouseScope


def main(url: str, name: str, lease_ms: str, *program: str) -> int:
    stop = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: stop.ask(signal.Signals(number).name))
    jobs = open_standing_jobs(url, None, WarehouseScope.of("lake"))
    options = StandingOptions(name, lease_ms=int(lease_ms), program=(sys.executable, *program))
    running = StandingJobs(
        jobs, SystemClock(), options, stop, lambda event: print(json.dumps(event.to_json()), flush=True)
    )
    running.start()
    stop.asked.wait()
    return 0 if running.close() else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
