"""One process of a gateway: a cleaner in the main thread, the server beside it, and a Spark session that is warm.

main    the cleaner's loop: looks, rounds, chores, leases      ──► ends by a signal, and all with it
http    requests; short ones on a pool of threads
jobs    long ones, on threads of their own
standing  processes of standing jobs, beside it: they end with the request to stop
warm    starts Spark once, so that the first round need not
kafka   requests of Kafka's clients; what waits for files runs on a pool of threads
keys    forgets idempotency keys of appends that are a day old
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread

from lithify.daemons.cleaner.loop import Loop
from lithify.daemons.stop import Stop
from lithify.errors import LithifyError
from lithify.gateway.process.audited import Audited
from lithify.gateway.process.forgetting_keys import ForgettingKeys
from lithify.gateway.process.kafka_listener import KafkaListener
from lithify.gateway.process.serving import Serving
from lithify.gateway.server.jobs.jobs import Jobs
from lithify.gateway.standing.standing_jobs import StandingJobs


@dataclass(frozen=True, slots=True)
class GatewayDaemon:
    """Runs until it is stopped."""

    loop: Loop
    serving: Serving
    jobs: Jobs
    standing: StandingJobs | None
    """None where there is not a database that gateways share."""
    warm: Callable[[], None]
    url: str
    warnings: tuple[str, ...] = ()
    """What a person should know of how it listens."""
    forgetting: ForgettingKeys | None = None
    """None where appends take no keys."""
    audited: Audited | None = None
    """Its audit log, if it has one."""
    kafka: KafkaListener | None = None
    """None where it does not serve Kafka's clients."""

    @property
    def stop(self) -> Stop:
        return self.loop.stop

    def run(self, *, once: bool = False) -> bool:
        """Runs until a request to stop; returns whether all threads have ended. Raises what the cleaner raises."""
        self.serving.start()
        if self.kafka is not None:
            self.kafka.start()
        if self.standing is not None:
            self.standing.start()
        Thread(target=self._warm, name="warm", daemon=True).start()
        if self.forgetting is not None:
            Thread(target=self.forgetting.run, name="keys", daemon=True).start()
        try:
            ended = self.loop.run(once=once)
        finally:
            in_order = self.standing is None or self.standing.close()
            self.jobs.close()
            self.serving.close()
            if self.kafka is not None:
                self.kafka.close()
            if self.audited is not None:
                self.audited.close()
        return ended and in_order

    def _warm(self) -> None:
        with suppress(LithifyError):  # the first round says what is wrong
            self.warm()
