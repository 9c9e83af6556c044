"""Finds in an exception of PySpark, Py4J or Java the line that says what happened."""

from __future__ import annotations

from collections.abc import Mapping

from lithify.errors import EngineUnavailableError

MASTER = "spark.master"
_OF_PY4J = "An error occurred while calling "
_ABORTED = "Job aborted"
_MOST = 300
_DOCTOR = "`lithify doctor` shows what is missing"


def reason(error: Exception) -> str:
    """One line about the cause: the exception that a task raised, else the first line of the text."""
    _, traceback, raised = str(error).rpartition("Traceback (most recent call last):")
    lines = [line for line in raised.splitlines() if line.strip()]
    if lines and lines[0].startswith(_OF_PY4J):  # a Java exception with its causes
        lines = [line for line in lines if _ABORTED in line] or [line.lstrip(": ") for line in lines[1:]]
    if traceback:  # the exception is the first line after the traceback that is not indented
        lines = [line for line in lines if not line[0].isspace()] or lines
    return (lines[0].strip() if lines else type(error).__name__)[:_MOST]


def start_failure(error: Exception, conf: Mapping[str, str]) -> EngineUnavailableError:
    """The error for a Spark that does not start with these settings."""
    said = reason(error)
    if "BindException" in said:
        hint = "a port is taken: set the port that it names to another one, or a higher spark.port.maxRetries"
    elif "JAVA_GATEWAY_EXITED" in said or "Connection refused" in said:
        said, hint = "its JVM ended while it started", f"the lines above have its reason; {_DOCTOR}"
    elif MASTER in conf and not conf[MASTER].startswith("local["):
        hint = f"check {MASTER}={conf[MASTER]}, and that this machine may use it; {_DOCTOR}"
    else:
        hint = _DOCTOR
    return EngineUnavailableError(f"Spark did not start: {said}", hint=hint)
