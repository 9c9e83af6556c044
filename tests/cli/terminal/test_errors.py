"""How errors are printed: the code, the line for people, and the object for programs."""

from __future__ import annotations

import json

import pytest

from lithify import errors
from lithify.cli.invocation import Invocation
from lithify.cli.main import _failed

KINDS = sorted(
    (kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.LithifyError)),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_is_printed_with_its_code_and_ends_with_its_exit_code(kind, capsys):
    code = kind.__name__.removesuffix("Error")
    exit_code = 2 if issubclass(kind, errors.RefusedError) else 1
    assert _failed(kind("t-0: it broke", hint="repair it"), Invocation(), 0) == exit_code
    assert capsys.readouterr().err == f"error[{code}]: t-0: it broke (repair it)\n"
    assert _failed(kind("t-0: it broke", hint="repair it"), Invocation(json=True), 0) == exit_code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert json.loads(shown.err) == {
        "code": code,
        "message": "t-0: it broke",
        "hint": "repair it",
        "exit_code": exit_code,
    }


def test_a_class_that_is_defined_elsewhere_has_the_code_of_its_base():
    from lithify.pulsar.client.broker_refusals import TransientBrokerError

    assert TransientBrokerError("away").code == "Broker"


def test_unexpected_exceptions_have_a_code(capsys):
    assert _failed(ZeroDivisionError("division by zero"), Invocation(), 0) == 1
    assert capsys.readouterr().err.startswith("error[Defect]: ZeroDivisionError: division by zero")
    try:
        raise PermissionError(13, "no right")
    except PermissionError as error:
        assert _failed(error, Invocation(), 0) == 1
    assert capsys.readouterr().err.startswith("error[UnusableEnvironment]: PermissionError: ")


def test_wrong_usage_is_an_object_as_well_wherever_the_flag_stands(lithify):
    for arguments in (("compact", "--json"), ("--json", "compact"), ("compact", "t", "--nope", "--json")):
        failed = lithify(*arguments, code=2)
        assert failed.out == ""
        told = json.loads(failed.err)
        assert (told["code"], told["exit_code"]) == ("Usage", 2)
        assert told["hint"] == "see `lithify compact --help`"
    assert lithify("compact", code=2).err.startswith("error[Usage]: ")


def test_the_object_names_the_topic_and_the_partition(lithify):
    lithify("topic", "create", "orders")
    told = json.loads(lithify("status", "nope", "--json", code=2).err)
    assert (told["code"], told["topic"]) == ("UnknownTopic", "nope")
    assert "partition" not in told
    name = "persistent://a/b/c"
    lithify("topic", "create", name)
    told = json.loads(lithify("consume", f"{name}-partition-7", "--json", code=2).err)
    assert (told["topic"], told["partition"]) == (name, 7)


def test_passwords_of_urls_are_not_in_the_object(capsys):
    Invocation(json=True).say_error("x", "Broker", topic="pulsar://u:secret@host")
    assert "secret" not in capsys.readouterr().err
