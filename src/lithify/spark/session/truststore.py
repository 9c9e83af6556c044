"""The certificates that this machine trusts, for a Java that brings its own and would not know of them.

A company's network often signs with a certificate of its own, which its machines are told to trust. Python and a Java
of the distribution read what they were told; the packaged Java could fetch nothing from Maven there.
"""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_BUNDLE = "ca-certificates.crt"
"""What Debian and its relatives call the file in the folder of certificates."""


def trusted_certificates() -> list[Certificate]:
    """Those that OpenSSL trusts by default; `SSL_CERT_FILE` and `SSL_CERT_DIR` name others."""
    places = ssl.get_default_verify_paths()
    for place in (places.cafile, places.capath and f"{places.capath}/{_BUNDLE}"):
        with suppress(OSError):
            if place:
                return list(_parsed(Path(place).read_bytes()))
    return []


def truststore(certificates: Sequence[Certificate]) -> bytes:
    """One or more as a PKCS #12 file without a password, which Java reads from version 18 on."""
    from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12

    named = [pkcs12.PKCS12Certificate(one, str(number).encode()) for number, one in enumerate(certificates)]
    return bytes(pkcs12.serialize_java_truststore(named, NoEncryption()))


def _parsed(certificates: bytes) -> Iterator[Certificate]:
    """Without those that break the standard: a list holds many, and one that is odd takes no other with it."""
    from cryptography import x509

    for text in certificates.split(_END)[:-1]:
        with warnings.catch_warnings(action="ignore"), suppress(ValueError):
            yield x509.load_pem_x509_certificate(text[text.find(_BEGIN) :] + _END)
