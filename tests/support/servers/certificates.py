"""Certificates that sign themselves, and their keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lithify.gateway.listening.tls import TlsFiles

PASSWORD = b"password"


def a_certificate(folder: Path, name: str, now: datetime, days: int = 30, *, host: str | None = None) -> TlsFiles:
    """For 127.0.0.1 or a `host`, valid from nine days ago; its key is also there with a password: `NAME.encrypted`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=9))
    named = x509.IPAddress(IPv4Address("127.0.0.1")) if host is None else x509.DNSName(host)
    names = x509.SubjectAlternativeName([named])
    builder = builder.not_valid_after(now + timedelta(days=days)).add_extension(names, critical=False)
    files = TlsFiles(folder / f"{name}.crt", folder / f"{name}.key")
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    files.certificate.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem))
    files.key.write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    encrypted = key.private_bytes(pem, form, serialization.BestAvailableEncryption(PASSWORD))
    (folder / f"{name}.encrypted").write_bytes(encrypted)
    return files
