"""Where Spark's Kafka connector comes from: a folder of jars, or the packages that Spark resolves itself.

--jars DIR, $LITHIFY_JARS ──► spark.jars            nothing is fetched
else ──► spark.jars.packages                        of exactly this Spark's version
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
"""Jars by name, all of them. The first has to be of Spark's own version."""

_SHOWN_HIDDEN = f"{SECRET_NAMES}|token|access[.]?key"  # what Spark hides by itself stays hidden
REDACTED = {"spark.redaction.regex": _SHOWN_HIDDEN, "spark.sql.redaction.options.regex": f"{_SHOWN_HIDDEN}|url"}
"""Spark's web page and event log show options of sources, and would not know what of Kafka's is secret."""

_JAR = re.compile(r"(.+?)-(\d[\w.]*)\.jar")


@dataclass(frozen=True, slots=True)
class Connector:
    """What is there. `missing` has the names of jars that are not."""

    folder: Path | None
    version: str | None
    missing: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        return f"org.apache.spark:{CONNECTOR}:{pyspark.__version__}"


def find_connector(jars: str | None = None) -> Connector:
    """Looks into the folder of jars, if one is given or in the environment. Raises nothing."""
    given = jars or os.environ.get(JARS_VARIABLE)
    if not given:
        return Connector(None, None)
    folder = Path(given).expanduser().absolute()
    found = {match[1]: match[2] for jar in folder.glob("*.jar") if (match := _JAR.fullmatch(jar.name))}
    return Connector(folder, found.get(CONNECTOR), tuple(name for name in NEEDED if name not in found))


def connector_conf(jars: str | None = None, conf: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """`conf` for a Spark session that has the connector, and reads with it. Raises `ConnectorError`."""
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
