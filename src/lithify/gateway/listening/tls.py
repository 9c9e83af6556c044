"""The certificate and key of a gateway, checked before it starts."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lithify.errors import RefusedError

_FORM = "pass a certificate and its own key in PEM, the key without a password"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the certificate with its issuers, and its key without a password."""

    certificate: Path
    key: Path


def checked_tls(files: TlsFiles, now: datetime) -> TlsFiles:
    """The files, if clients can connect with them. Raises `RefusedError`."""
    for path in (files.certificate, files.key):
        if path.is_fifo():
            raise RefusedError(f"{path} is a pipe, which can be read only once", hint="write it into a file")
        try:
            with path.open("rb") as file:
                file.read(1)
        except OSError as error:
            raise RefusedError(
                f"{path} cannot be read: {error.strerror}", hint="check the path and its rights"
            ) from None
    try:
        server_context(files)
    except ssl.SSLError as error:
        raise RefusedError(
            f"{files.certificate} and {files.key} cannot be used for TLS: {_said(error)}",
            hint=_FORM,
        ) from None
    _check_valid(files.certificate, now)
    return files


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """By which a server shows the certificate. Raises `ssl.SSLError`, and does not ask for a password."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key, lambda: "")
    return context


def _said(error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key belongs to another certificate"
    return error.reason.replace("_", " ").lower() if error.reason else "they are not PEM"


def _check_valid(path: Path, now: datetime) -> None:
    from cryptography.x509 import load_pem_x509_certificate

    try:
        certificate = load_pem_x509_certificate(path.read_bytes())
    except ValueError:  # as for OpenSSL's own `TRUSTED CERTIFICATE`, and numbers that X.509 does not have
        raise RefusedError(f"{path} has no certificate that clients accept", hint=_FORM) from None
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not begin <= now <= end:
        raise RefusedError(
            f"{path}: the certificate is valid from {begin:%Y-%m-%dT%H:%MZ} to {end:%Y-%m-%dT%H:%MZ}, not now",
            hint="renew it, or check the clock of this machine",
        )
