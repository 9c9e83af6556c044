"""Where a soak has its topics: a PostgreSQL for catalog and leases, an S3 endpoint for the files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg2
from pyarrow.fs import FileSelector, FileType, S3FileSystem
from pyiceberg.utils.config import Config

from support.servers.postgres import Postgres, a_postgres
from support.servers.s3_endpoint import S3Endpoint, an_s3_endpoint

CATALOG = "soak"
CONNECTIONS = "200"
"""Each program has up to 15 to the catalog, and as many to leases and positions."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Both, and what programs have to have in their environment to find them."""

    postgres: Postgres
    s3: S3Endpoint
    database: str
    bucket: str

    @property
    def env(self) -> dict[str, str]:
        properties = {
            "type": "sql",
            "uri": self.postgres.uri(self.database),
            "warehouse": f"s3://{self.bucket}/lake",
            **self.s3.properties(),
        }
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "JAVA_TOOL"))}
        described = {f"PYICEBERG_CATALOG__{CATALOG.upper()}__{name.upper()}": v for name, v in properties.items()}
        return {**mine, **described, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}

    def leases(self) -> Mapping[str, str]:
        """By name, the owner. None before the first cleaner has made the table."""
        try:
            rows = self.postgres.run("SELECT name, owner FROM lithify_leases", self.database)
        except psycopg2.errors.UndefinedTable:
            return {}
        return {str(name): str(owner) for name, owner in rows}

    def stored(self) -> tuple[int, int]:
        """How many objects there are, and their bytes."""
        endpoint = f"http://127.0.0.1:{self.s3.port}"
        files = S3FileSystem(access_key="an-id", secret_key="a-secret", endpoint_override=endpoint)
        found = files.get_file_info(FileSelector(self.bucket, recursive=True, allow_not_found=True))
        sizes = [info.size for info in found if info.type is FileType.File]
        return len(sizes), sum(sizes)


@contextmanager
def soak_servers() -> Iterator[Servers]:
    """Both of them, described as the catalog `soak` in the environment of this program."""
    with a_postgres(max_connections=CONNECTIONS) as postgres, an_s3_endpoint() as s3:
        servers = Servers(postgres, s3, postgres.make_database(), s3.make_bucket())
        os.environ.update(servers.env)
        from pyiceberg import catalog

        catalog._ENV_CONFIG = Config()  # which it had read when it was imported
        yield servers
