"""A warehouse as in production: PostgreSQL for the catalog, S3 for the files, a wire to each that can be cut."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from pyarrow import fs

from lithify.api.wiring import open_warehouse
from lithify.model.segment import Segment
from lithify.ports.store import Warehouse
from lithify.store.iceberg import open_store
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.testing.fake_clock import FakeClock
from support.servers.postgres import Postgres, a_postgres
from support.servers.s3_endpoint import S3Endpoint, an_s3_endpoint
from support.servers.tcp_proxy import TcpProxy, a_proxy
from support.store.builders import NOW_MS, Place
from support.store.catalogs import describe_catalog

pytest.register_assert_rewrite("store.conformance")


@dataclass(frozen=True, slots=True)
class Backend:
    """The servers behind the catalog `prod`, each behind a wire of its own. `bucket` and `database` are this test's."""

    postgres: Postgres
    s3: S3Endpoint
    database_wire: TcpProxy
    s3_wire: TcpProxy
    database: str
    bucket: str
    describe: Callable[..., None]

    @property
    def properties(self) -> dict[str, str]:
        """What PyIceberg's configuration says of the catalog."""
        return {
            "type": "sql",
            "uri": self.postgres.uri(self.database, self.database_wire.port),
            "warehouse": f"s3://{self.bucket}/lake",
            **self.s3.properties(self.s3_wire.port),
        }

    def place(self) -> Place:
        """The store as a process of its own would open it."""
        FILE_CACHE.clear()
        clock = FakeClock(NOW_MS)
        store, files = open_store(None, "prod", clock.new_id)
        return Place(store, files, clock, self.lose)

    def warehouse(self) -> Warehouse:
        """The same with the machine's clock."""
        FILE_CACHE.clear()
        return open_warehouse(catalog="prod")

    def lose(self, segment: Segment) -> None:
        """Deletes the file of a segment behind the store's back."""
        self.filesystem().delete_file(segment.path.removeprefix("s3://"))

    def filesystem(self, **options: bool) -> fs.S3FileSystem:
        """The bucket, past the wire."""
        endpoint = f"http://127.0.0.1:{self.s3.port}"
        return fs.S3FileSystem(access_key="an-id", secret_key="a-secret", endpoint_override=endpoint, **options)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with a_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Endpoint]:
    with an_s3_endpoint() as server:
        yield server


@pytest.fixture
def backend(postgres: Postgres, s3: S3Endpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    database = postgres.make_database()
    for variable in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(variable)
    with a_proxy("127.0.0.1", postgres.port) as database_wire, a_proxy("127.0.0.1", s3.port) as s3_wire:

        def describe(**changed: str) -> None:
            describe_catalog(monkeypatch, **(found.properties | changed))

        found = Backend(postgres, s3, database_wire, s3_wire, database, s3.make_bucket(), describe)
        describe()
        yield found
    postgres.drop_database(database)


@pytest.fixture
def place(backend: Backend) -> Place:
    return backend.place()
