"""Finds in an exception of PySpark, Py4J or Java the line that says what happened, and the setting that is to blame."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping

from lithify.errors import EngineUnavailableError
from lithify.errors.redaction import one_line

MASTER = "spark.master"
_OF_PY4J = "An error occurred while calling "
_ABORTED = "Job aborted"
_MOST = 300
_ENDED_BY_MASTER = ("Master removed our application", "stopped SparkContext", "SparkContext was shut down")
"""Spark's: what a job, and a call of a driver, say whose application the master has given up."""
_DOCTOR = "run `lithify doctor` to see what is missing"

_RETRIES = "spark.port.maxRetries"
_NOT_BOUND = re.compile(r"Service '([^']+)' failed after \d+ retries \((?:starting from (\d+)|on a random free port)")
_PORTS = {
    "sparkDriver": ("spark.driver.port",),
    "org.apache.spark.network.netty.NettyBlockTransferService": (
        "spark.driver.blockManager.port",
        "spark.blockManager.port",
    ),
}
"""By service, the settings that name its port: the first that is set counts."""
_NO_ADDRESS = ("Cannot assign requested address", "UnresolvedAddressException")
_ADDRESSES = ("spark.driver.bindAddress", "spark.driver.host")
_LOCAL_IP = "SPARK_LOCAL_IP"
_UI, _UI_PORT = "spark.ui.enabled", "spark.ui.port"
_ENDED_WITH_WORDS = ("JAVA_GATEWAY_EXITED", "Connection refused")
"""PySpark's: the JVM came to no gateway. What its own scripts and Java say of that is on stderr."""
_ENDED = "Error while sending or receiving"
"""Py4J's: the JVM ended during a call."""


def reason(error: Exception) -> str:
    """One line about the cause: the exception that a task raised, else the first line of the text."""
    _, traceback, raised = str(error).rpartition("Traceback (most recent call last):")
    lines = [line for line in raised.splitlines() if line.strip()]
    if lines and lines[0].startswith(_OF_PY4J):  # a Java exception with its causes
        lines = [line for line in lines if _ABORTED in line] or [line.lstrip(": ") for line in lines[1:]]
    if traceback:  # the exception is the first line after the traceback that is not indented
        lines = [line for line in lines if not line[0].isspace()] or lines
    return one_line(lines[0] if lines else type(error).__name__, _MOST)


def ended_application(text: str) -> tuple[str, str] | None:
    """What happened and what to do, if the text of an exception says that the master ended Spark's application."""
    if not any(sign in text for sign in _ENDED_BY_MASTER):
        return None
    return (
        "the cluster's master ended the application, as its executors did not start or ended",
        (
            "see the log of a Spark worker, or the stderr of the executors in its folder work/APPLICATION, which the "
            "master's web page links; nothing was changed"
        ),
    )


def start_failure(error: Exception, conf: Mapping[str, str]) -> EngineUnavailableError:
    """The error for a Spark that does not start with these settings."""
    cause, text = reason(error), str(error)
    if ended := ended_application(text):
        cause, hint = ended
    elif any(sign in text for sign in _NO_ADDRESS):
        cause, hint = _address_of_others(conf)
    elif "BindException" in text:
        cause, hint = _port_taken(text, cause, conf)
    elif _ENDED in text and (port := _taken_by_another_ui(conf)):
        cause = f"port {port} of its web interface is in use"
        hint = f"set {_UI_PORT} to another port, {_RETRIES} to more than 0, or {_UI}=false"
    elif any(sign in text for sign in (*_ENDED_WITH_WORDS, _ENDED)):
        cause, hint = "its JVM ended while it started", f"see the lines above; {_DOCTOR}"
    elif MASTER in conf and not conf[MASTER].startswith("local["):
        hint = f"check {MASTER}={conf[MASTER]}, and that this machine may use it; {_DOCTOR}"
    else:
        hint = _DOCTOR
    return EngineUnavailableError(f"Spark did not start: {cause}", hint=hint)


def _address_of_others(conf: Mapping[str, str]) -> tuple[str, str]:
    """What happened, and the setting whose address does not belong to this machine."""
    named = [(name, conf[name]) for name in _ADDRESSES if name in conf]
    if _LOCAL_IP in os.environ:
        named.append((_LOCAL_IP, os.environ[_LOCAL_IP]))
    if not named:
        return (
            "this machine does not have the address at which it should listen",
            f"set {_ADDRESSES[0]} to an address of this machine",
        )
    name, address = named[0]
    return (
        f"this machine does not have the address {address} at which it should listen",
        f"set {name} to an address of this machine",
    )


def _port_taken(text: str, cause: str, conf: Mapping[str, str]) -> tuple[str, str]:
    """What happened, and the setting that names a port which another program has."""
    match = _NOT_BOUND.search(text)
    more = f"raise {_RETRIES}, the number of further ports that are tried"
    if match is None:
        return cause, f"a port is in use: set that port to another one, or {more}"
    service, port = match.groups()
    settings = _PORTS.get(service, (f"the port of {service}",))
    setting = next((name for name in settings if name in conf), settings[0])
    if port is None:
        return f"no port for {setting} is free", f"set {setting} to a free port"
    return f"port {port} is in use", f"set {setting} to a free port or to 0, which takes any, or {more}"


def _taken_by_another_ui(conf: Mapping[str, str]) -> str | None:
    """The port that Spark was to have for its web interface if another program has it: its JVM exits without a word.

    Only if Spark is configured to try no other, as it does by default.
    """
    port = conf.get(_UI_PORT, "4040")
    if conf.get(_UI, "true") == "false" or conf.get(_RETRIES) != "0" or not port.isdecimal() or port == "0":
        return None
    with socket.socket() as tried:
        try:
            tried.bind(("", int(port)))
        except (OSError, OverflowError):
            return port
    return None
