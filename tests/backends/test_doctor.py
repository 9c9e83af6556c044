"""`lithify doctor` tries the store behind a catalog: within seconds, and so that nothing is left in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.request import Request, urlopen

import pytest

from support.processes.in_process import Outcome, Program
from support.processes.programs import PROGRAM
from support.servers.s3_endpoint import S3Endpoint
from support.servers.tcp_proxy import HttpError, TcpProxy, a_proxy, free_port

BOUND_S = 15.0
STARTING_S = 30.0
"""For the program and the checks beside it, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Described:
    """The catalog `prod`: an SQLite file, and a folder in a bucket behind a wire that can be cut."""

    folder: Path
    s3: S3Endpoint
    wire: TcpProxy
    bucket: str

    def doctor(
        self, port: int | None = None, bucket: str | None = None, *, code: int = 3, apart: bool = False
    ) -> tuple[int, dict[str, Any]]:
        """Exit code, and the check of the store; `apart` in a process of its own, for what may hang."""
        properties = {
            "type": "sql",
            "uri": f"sqlite:///{self.folder}/catalog.db",
            "warehouse": f"s3://{bucket or self.bucket}/lake",
            **self.s3.properties(port or self.wire.port),
        }
        named = {f"PYICEBERG_CATALOG__PROD__{n.upper().replace('.', '__')}": v for n, v in properties.items()}
        others = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYSPARK_PYTHON"))}
        command = ("doctor", "--catalog", "prod", "--json")
        began = time.monotonic()
        with patch.dict(os.environ, others | named, clear=True):
            if apart:
                done = subprocess.run([*PROGRAM, *command], capture_output=True, text=True, check=False, timeout=120)
                found = Outcome(done.returncode, done.stdout, done.stderr)
            else:
                found = Program(self.folder)(*command, code=code)
        assert time.monotonic() - began < BOUND_S + STARTING_S
        assert "Traceback" not in found.err, found.err
        (store,) = (check for check in json.loads(found.out)["checks"] if check["name"] == "store")
        assert "a-secret" not in found.out + found.err
        return found.code, store

    def objects(self) -> list[str]:
        """Everything in the bucket, also objects that stand for a folder, which Arrow does not show."""
        with urlopen(f"http://127.0.0.1:{self.s3.port}/{self.bucket}?list-type=2", timeout=10) as answer:
            return re.findall("<Key>(.*?)</Key>", answer.read().decode())

    def put(self, path: str) -> None:
        url = f"http://127.0.0.1:{self.s3.port}/{self.bucket}/{path}"
        with urlopen(Request(url, data=b"theirs", method="PUT"), timeout=10):
            pass


@pytest.fixture
def prod(s3: S3Endpoint, tmp_path: Path) -> Iterator[Described]:
    with a_proxy("127.0.0.1", s3.port) as wire:
        yield Described(tmp_path, s3, wire, s3.make_bucket())


def test_no_file_is_left_in_a_store_that_can_be_used(prod: Described) -> None:
    prod.put("lake/default/orders")
    before = prod.objects()
    asked: list[bytes] = []
    prod.wire.on_request = lambda request: asked.append(request.partition(b" HTTP")[0])

    code, store = prod.doctor(code=0)

    assert (code, store["ok"], store["hint"]) == (0, True, "")
    where = f"s3://{prod.bucket}/lake at http://127.0.0.1:{prod.wire.port}"
    assert store["detail"] == f"{where}, listed; a small file was written, read and deleted"
    stands_for_the_folder = "lake/"  # Arrow puts it where it deletes a file
    assert [key for key in prod.objects() if key != stands_for_the_folder] == before
    written = {line.partition(b" ")[0] for line in asked if b"/lake/.lithify-doctor-" in line}
    assert {b"PUT", b"GET", b"DELETE"} <= written


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("SignatureDoesNotMatch", "the secret key does not match the access key"),
        ("AccessDenied", "access to it is refused"),
    ],
)
def test_credentials_that_are_refused_are_named(prod: Described, code: str, says: str) -> None:
    prod.wire.answer(10**6, HttpError(403, code))

    exit_code, store = prod.doctor()

    assert (exit_code, store["ok"]) == (3, False)
    assert f"s3://{prod.bucket}/lake at http://127.0.0.1:{prod.wire.port} cannot be listed: " in store["detail"]
    assert says in store["detail"]
    assert "credentials" in store["hint"]


def test_the_right_to_write_may_be_what_is_lacking(prod: Described) -> None:
    prod.wire.on_request = lambda request: (
        prod.wire.answer(1, HttpError(403, "AccessDenied")) if request.startswith(b"PUT ") else None
    )

    code, store = prod.doctor()

    assert (code, store["ok"]) == (3, False)
    assert "cannot be written to: " in store["detail"]
    assert "may be left" not in store["detail"]


def test_a_bucket_that_is_not_there_is_named(prod: Described) -> None:
    code, store = prod.doctor(bucket="no-such-bucket")

    assert (code, store["ok"]) == (3, False)
    assert "s3://no-such-bucket/lake" in store["detail"]
    assert "there is no such bucket" in store["detail"]
    assert "create it" in store["hint"]


@pytest.mark.alone
def test_an_endpoint_at_which_nobody_listens_is_named(prod: Described) -> None:
    port = free_port()
    code, store = prod.doctor(port, apart=True)

    assert (code, store["ok"]) == (3, False)
    assert f"s3://{prod.bucket}/lake at http://127.0.0.1:{port} cannot be listed: " in store["detail"]


@pytest.mark.alone
def test_a_silent_endpoint_is_given_up(prod: Described) -> None:
    prod.wire.silent = True

    code, store = prod.doctor(apart=True)

    assert (code, store["ok"]) == (3, False)
    assert "cannot be listed: " in store["detail"]
