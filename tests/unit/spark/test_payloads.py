"""What travels to tasks in rows has no credentials in it, whatever it is made of."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from lithify.columnar.files.access import FileAccess
from lithify.spark.payloads import Unpacking, packed
from lithify.spark.tasks import Pace, TaskPace

SECRET = "not-for-the-disk"
ACCESS = FileAccess({"s3.secret-access-key": SECRET, "s3.region": "eu-central-1"})


@dataclass(frozen=True)
class Work:
    number: int
    inner: list[object]


def test_credentials_stay_behind_and_are_there_again() -> None:
    work = Work(3, [ACCESS, {"deep": (ACCESS,)}])
    payload = packed(work)
    assert SECRET.encode() not in payload
    assert SECRET.encode() in pickle.dumps(work)
    assert Unpacking(ACCESS)(payload) == work


def test_credentials_are_not_shown() -> None:
    assert SECRET not in f"{ACCESS!r} {TaskPace(Pace(float, print), None, ACCESS)!r}"  # type: ignore[arg-type]
