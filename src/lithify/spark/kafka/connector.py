"""Finds Spark's Kafka connector: in a folder of jars, else as a package that Spark downloads.

--jars DIR, $LITHIFY_JARS ──► spark.jars            without download
else ──► spark.jars.packages                        of the version of Spark
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyspark

from lithify.errors import ConnectorError
from lithify.model.settings.secrets import SECRET_NAMES
from lithify.spark.session.start import COMPILES_WELL, JAVA_OPTIONS, java_options

JARS_VARIABLE = "LITHIFY_JARS"
SCALA = "2.13"
CONNECTOR = f"spark-sql-kafka-0-10_{SCALA}"
NEEDED = (CONNECTOR, f"spark-token-provider-kafka-0-10_{SCALA}", "kafka-clients", "commons-pool2")
"""Names of the required jars. The first must have the version of Spark."""

_SHOWN_HIDDEN = f"{SECRET_NAMES}|token|access[.]?key"  # Spark's default, extended
REDACTED = {"spark.redaction.regex": _SHOWN_HIDDEN, "spark.sql.redaction.options.regex": f"{_SHOWN_HIDDEN}|url"}
"""Spark's web UI and event log show options of sources, and do not redact all of Kafka's secrets by default."""

_JAR = re.compile(r"(.+?)-(\d[\w.]*)\.jar")


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
    folder = Path(given).expanduser().absolute()
    found = {match[1]: match[2] for jar in folder.glob("*.jar") if (match := _JAR.fullmatch(jar.name))}
    return Connector(folder, found.get(CONNECTOR), tuple(name for name in NEEDED if name not in found))


def connector_conf(jars: str | None = None, conf: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """`conf` with the settings of a session that reads with the connector. Raises `ConnectorError`."""
    given = conf or {}
    return {**_where(find_connector(jars)), **REDACTED, **given, JAVA_OPTIONS: java_options(COMPILES_WELL, given)}


def _where(connector: Connector) -> Mapping[str, str]:
    if connector.folder is None:
        return {"spark.jars.packages": connector.package}
    if connector.missing:
        raise ConnectorError(
            f"{connector.folder} has no {', no '.join(connector.missing)}",
            hint=f"put the jars of {connector.package} and of what it depends on there",
        )
    if connector.version != pyspark.__version__:
        raise ConnectorError(
            f"{connector.folder} has {CONNECTOR} {connector.version}, and Spark is {pyspark.__version__}",
            hint=f"put {connector.package} there instead",
        )
    return {"spark.jars": ",".join(sorted(str(jar) for jar in connector.folder.glob("*.jar")))}
