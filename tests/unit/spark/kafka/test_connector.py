"""Which jars of the connector are taken, and what is said where they cannot be fetched."""

from __future__ import annotations

import pyspark
import pytest

from lithify.errors import ConnectorError
from lithify.spark.kafka.connector import NEEDED, connector_conf, find_connector
from lithify.spark.kafka.fetched import fetch, reason_of

SERIES = ".".join(pyspark.__version__.split(".")[:2])
NOWHERE = {"spark.jars.ivySettings": "/nowhere/ivysettings.xml"}
NAMED_BY_IVY = (
    f"org.apache.spark_spark-sql-kafka-0-10_2.13-{SERIES}.0.jar",
    f"org.apache.spark_spark-token-provider-kafka-0-10_2.13-{SERIES}.0.jar",
    "org.apache.kafka_kafka-clients-3.9.2.jar",
    "org.apache.commons_commons-pool2-2.13.1.jar",
)


def test_a_connector_of_another_patch_version_is_taken_with_a_note(tmp_path):
    for name in NEEDED:
        (tmp_path / f"{name}-{SERIES}.99.jar").touch()
    told: list[str] = []
    assert f"{NEEDED[0]}-{SERIES}.99.jar" in connector_conf(str(tmp_path), {}, told.append)["spark.jars"]
    assert told == [f"{tmp_path} has {NEEDED[0]} {SERIES}.99 for Spark {pyspark.__version__}"]


def test_jars_as_ivy_names_them_are_known(tmp_path):
    for name in NAMED_BY_IVY:
        (tmp_path / name).touch()
    found = find_connector(str(tmp_path))
    assert (found.missing, found.version) == ((), f"{SERIES}.0")


@pytest.mark.long
def test_one_that_cannot_be_fetched_is_one_line_with_the_way_to_it(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    package = f"org.apache.spark:{NEEDED[0]}:{SERIES}.99"
    told: list[str] = []
    with pytest.raises(ConnectorError) as failed:
        fetch(package, NOWHERE, told.append)
    text = str(failed.value)
    assert f"{package} cannot be fetched from Maven" in text
    assert "\n" not in text
    assert f"spark-submit --packages {package}" in text and "jars=..." in text
    assert told == [f"fetching {package} from Maven"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "line",
    [
        "\tServer access error at url https://maven/a.pom (javax.net.ssl.SSLHandshakeException: PKIX path)",
        "\tSERVER ERROR: Internal Server Error url=https://maven/a.pom",
        "\tproblem while downloading module descriptor: https://maven/a.pom: invalid sha1",
        "\tHost maven not found. url=https://maven/a.pom",
    ],
)
def test_the_reason_of_a_failed_fetch_is_not_that_nothing_was_found(line):
    """Ivy says that at the end, whatever it was."""
    end = 'Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: a#b;1.0: not found]'
    assert reason_of(f":: problems summary ::\n{line}\n{end}\n\tat org.apache.spark.Main") == line.strip()
    assert reason_of(f"{end}\n\tat org.apache.spark.Main") == end
