"""The certificate and key of a gateway, checked before it starts."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lithify.errors import RefusedError


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the certificate with its issuers, and its key without a password."""

    certificate: Path
    key: Path


def checked_tls(files: TlsFiles, now: datetime) -> TlsFiles:
    """The files, if clients can connect with them. Raises `RefusedError`."""
    for path in (files.certificate, files.key):
        try:
            with path.open("rb") as file:
                file.read(1)
        except OSError as error:
            raise RefusedError(
                f"{path} cannot be read: {error.strerror}", hint="check the path and its rights"
            ) from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key, lambda: "")
    except ssl.SSLError as error:
        raise RefusedError(
            f"{files.certificate} and {files.key} cannot be used for TLS: {_said(error)}",
            hint="pass a certificate and its own key in PEM, the key without a password",
        ) from None
    _check_valid(files.certificate, now)
    return files


def _said(error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key belongs to another certificate"
    return (error.reason or "they are not PEM").replace("_", " ").lower()


def _check_valid(path: Path, now: datetime) -> None:
    from cryptography.x509 import load_pem_x509_certificate

    certificate = load_pem_x509_certificate(path.read_bytes())
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not begin <= now <= end:
        raise RefusedError(
            f"{path}: the certificate is valid from {begin:%Y-%m-%dT%H:%MZ} to {end:%Y-%m-%dT%H:%MZ}, not now",
            hint="renew it, or check the clock of this machine",
        )
