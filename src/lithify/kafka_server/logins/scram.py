"""The server's side of SCRAM (RFC 5802, RFC 7677), without sockets and without users.

    client                                         server
    n,,n=USER,r=NONCE                   ──►
                                        ◄──        r=NONCE+MORE,s=SALT,i=4096
    c=biws,r=NONCE+MORE,p=PROOF         ──►        checked with the stored key
                                        ◄──        v=SIGNATURE, made with the server key

The first answer follows from the name alone: nothing is looked up for it, and it is the same whether there is such a
user or not. Channel binding is not offered. Extensions are ignored, as the RFC has it, but one that must be understood
(`m=`), and Kafka's `tokenauth=true`: it names a user of delegation tokens, which there are none of here.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from hmac import compare_digest

from lithify.model.access.scram import ITERATIONS, KeyPair, Mechanism, salt_of
from lithify.model.access.tokens import id_of_user

MOST_BYTES = 2_048
"""What a client sends at once. Real clients send some 200."""
_NAME = r"(?:[^=,\0]|=2C|=3D)+"
_EXTENSIONS = r"(?:,[A-Za-z]+=[^,\0]+)*"
_NONCE = r"[!-+\--~]+"
_BASE64 = r"[A-Za-z0-9/+]*={0,2}"
_FIRST = re.compile(
    rf"(?P<header>[ny],(?:a=(?P<other>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<user>{_NAME}),r=(?P<nonce>{_NONCE})(?P<more>{_EXTENSIONS}))"
)
_FINAL = re.compile(
    rf"(?P<unproved>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_NONCE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)


class ScramError(Exception):
    """A message cannot be taken, or proves nothing. The text is for the client too."""


class WrongProofError(ScramError):
    """A client does not have the password."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a client was sent, and has to answer."""

    mechanism: Mechanism
    user: str
    """The id of a token, if there is one of it."""
    header: str
    """How its first message began, which its last one repeats."""
    bare: str
    """The rest of its first message."""
    nonce: str
    """Its own, and what the server has added."""

    @property
    def sent(self) -> str:
        """The answer to the first message."""
        return f"r={self.nonce},s={b64encode(salt_of(self.user)).decode()},i={ITERATIONS}"

    def answered(self, message: bytes, keys: KeyPair) -> bytes:
        """The last answer to a client that has proved to have the password. Raises `ScramError`."""
        final = _FINAL.fullmatch(_text(message))
        if final is None:
            raise ScramError("the last message of SCRAM is malformed")
        # librdkafka 2.0 repeats its own nonce before the whole one; a broker compares the end as well
        if not final["nonce"].endswith(self.nonce) or _decoded(final["binding"]) != self.header.encode():
            raise ScramError("the last message of SCRAM does not belong to the first one")
        signed = f"{self.bare},{self.sent},{final['unproved']}".encode()
        signature = self.mechanism.hmac(keys.stored_key, signed)
        proof = _decoded(final["proof"])
        if len(proof) != len(signature):
            raise ScramError("the proof of SCRAM has another length than its hash")
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        if not compare_digest(self.mechanism.digest(client_key), keys.stored_key):
            raise WrongProofError("the proof of SCRAM is wrong")
        return b"v=" + b64encode(self.mechanism.hmac(keys.server_key, signed))


def challenge(mechanism: Mechanism, message: bytes, nonce: str) -> Challenge:
    """What a client is sent for its first message; `nonce` is new and random. Raises `ScramError`."""
    first = _FIRST.fullmatch(_text(message))
    if first is None:
        raise ScramError("the first message of SCRAM is malformed, or asks for channel binding")
    if "tokenauth=true" in first["more"].lower().split(","):
        raise ScramError("there are no delegation tokens: log in without tokenauth=true")
    if first["other"] not in (None, first["user"]):
        raise ScramError("nobody can act for another user")
    user = first["user"].replace("=2C", ",").replace("=3D", "=")
    return Challenge(mechanism, id_of_user(user), first["header"], first["bare"], first["nonce"] + nonce)


def _text(message: bytes) -> str:
    if len(message) > MOST_BYTES:
        raise ScramError(f"a message of SCRAM has at most {MOST_BYTES} bytes, not {len(message)}")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("a message of SCRAM is not UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error:
        raise ScramError("a message of SCRAM has malformed base64") from None
