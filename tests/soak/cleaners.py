"""The programs of a soak that compact: cleaners, or gateways in their place."""

from __future__ import annotations

from collections.abc import Mapping

from soak.programs import Program
from soak.servers import CATALOG
from soak.wish import Wish

LEASE_S = 10
FREEZES_FOR_S = 2.0 * LEASE_S
INTERVAL_S = 3


def cleaners_of(wish: Wish, env: Mapping[str, str], ports: Mapping[str, int]) -> list[Program]:
    """Not started yet. A gateway for each of the `ports`, by name; without any, cleaners."""
    flags = ["--catalog", CATALOG, "--threads", "2", "--interval", f"{INTERVAL_S}s", "--lease", f"{LEASE_S}s"]
    flags += ["--sweep-interval", "60s", "--task-memory", "256MiB", "--spark-conf", "spark.driver.memory=1g"]
    commands = {
        name: ["gateway", "run", "--name", name, "--listen", f"127.0.0.1:{port}"] for name, port in ports.items()
    }
    if not commands:
        names = [f"cleaner-{number}" for number in range(1, wish.cleaners + 1)]
        commands = {name: ["cleaner", "run", "--id", name] for name in names}
    return [Program(name, [*command, *flags], wish.folder, env) for name, command in commands.items()]
