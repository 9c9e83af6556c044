"""Finds Spark's Kafka connector: in a folder of jars, else as a package from Maven.

--jars DIR, $LITHIFY_JARS ──► spark.jars            without download
else ──► fetched once from Maven ──► spark.jars     of the version of Spark
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark

from lithify.errors import ConnectorError
from lithify.model.settings.secrets import SECRET_NAMES
from lithify.model.stored_file import local_folder
from lithify.spark.kafka.fetched import fetch
from lithify.spark.session.launch import COMPILES_WELL, JAVA_OPTIONS, java_options

JARS_VARIABLE = "LITHIFY_JARS"
SCALA = "2.13"
_PACKAGES = "spark.jars.packages"
CONNECTOR = f"spark-sql-kafka-0-10_{SCALA}"
NEEDED = (CONNECTOR, f"spark-token-provider-kafka-0-10_{SCALA}", "kafka-clients", "commons-pool2")
"""Names of the required jars. The first must have the version of Spark."""

_SHOWN_HIDDEN = f"{SECRET_NAMES}|token|access[.]?key"  # Spark's default, extended
REDACTED = {"spark.redaction.regex": _SHOWN_HIDDEN, "spark.sql.redaction.options.regex": f"{_SHOWN_HIDDEN}|url"}
"""Spark's web UI and event log show options of sources, and do not redact all of Kafka's secrets by default."""

_JAR = re.compile(r"(?:[\w.]+?_(?=[a-z]))?(.+?)-(\d[\w.]*)\.jar")
"""Ivy puts the organization and an underscore before the name."""


@dataclass(frozen=True, slots=True)
class Connector:
    """What was found: the folder, the connector's version, and the names of missing jars."""

    folder: Path | None
    version: str | None
    missing: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        return f"org.apache.spark:{CONNECTOR}:{pyspark.__version__}"


def find_connector(jars: str | None = None) -> Connector:
    """Lists the folder of jars that is given or in the environment, if any. Raises nothing."""
    given = jars or os.environ.get(JARS_VARIABLE)
    if not given:
        return Connector(None, None)
    folder = local_folder(given)
    versions = {match[1]: match[2] for jar in folder.glob("*.jar") if (match := _JAR.fullmatch(jar.name))}
    return Connector(folder, versions.get(CONNECTOR), tuple(name for name in NEEDED if name not in versions))


def connector_conf(
    jars: str | None = None, conf: Mapping[str, str] | None = None, tell: Callable[[str], None] = lambda _text: None
) -> Mapping[str, str]:
    """`conf` with the settings of a session that reads with the connector, which is fetched if no folder is named.

    `tell` is called with what may take long, or is not as usual. Raises `ConnectorError`.
    """
    given = conf or {}
    where = _where(find_connector(jars), given, tell)
    return {**where, **REDACTED, **given, JAVA_OPTIONS: java_options(COMPILES_WELL, given)}


def checked(connector: Connector) -> str:
    """What is to be said of a folder that will do, or nothing. Raises `ConnectorError` for one that will not."""
    if connector.missing:
        raise ConnectorError(
            f"{connector.folder} has no {', no '.join(connector.missing)}",
            hint=f"put the jars of {connector.package} and of its dependencies there",
        )
    version, spark = str(connector.version), pyspark.__version__
    if version.split(".")[:2] != spark.split(".")[:2]:
        raise ConnectorError(
            f"{connector.folder} has {CONNECTOR} {version}, but Spark is {spark}",
            hint=f"put {connector.package} there instead",
        )
    return "" if version == spark else f"{connector.folder} has {CONNECTOR} {version} for Spark {spark}"


def missing_connector() -> ConnectorError:
    """The error for a session without Kafka's classes on its class path."""
    return ConnectorError(
        "this Spark session has no Kafka connector",
        hint="give a folder with its jars with --jars, or give the session spark.jars.packages; see `lithify doctor`",
    )


def _where(connector: Connector, given: Mapping[str, str], tell: Callable[[str], None]) -> Mapping[str, str]:
    folder = connector.folder
    if folder is None:
        if _PACKAGES in given or "PYSPARK_GATEWAY_PORT" in os.environ or "SPARK_REMOTE" in os.environ:
            return {_PACKAGES: connector.package}  # or what `given` has; a session that has begun fetches nothing
        folder = fetch(connector.package, given, tell)
    elif note := checked(connector):
        tell(note)
    jars = sorted(str(jar) for jar in folder.glob("*.jar"))
    return {"spark.jars": ",".join(jars)}
