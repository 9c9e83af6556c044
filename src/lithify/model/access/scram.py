"""What is stored of a token for SCRAM (RFC 5802, RFC 7677), by which a client proves that it has it without sending it.

    salted = PBKDF2(token, salt, iterations)
    stored key = H(HMAC(salted, "Client Key"))       checks a client
    server key = HMAC(salted, "Server Key")          proves to a client that the server knows it too

The salt follows from the user's name. Salts keep people who guess passwords from guessing those of all users at once,
and nobody guesses a token. So a server answers a name that nobody has like any other, without a secret for that.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum
from hashlib import new, pbkdf2_hmac, sha256

ITERATIONS = 4096
"""The fewest that Kafka's clients accept. More would cost clients time, and protect no more: a token is random."""
_SALT_BYTES = 16


class Mechanism(StrEnum):
    """By the names that Kafka's clients have for them."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"

    @property
    def hash_name(self) -> str:
        """As `hashlib` has it."""
        return self.removeprefix("SCRAM-").replace("-", "").lower()

    def digest(self, data: bytes) -> bytes:
        return new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self.hash_name)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """Of one mechanism. Who has both cannot log in, but can pretend to be the server."""

    stored_key: bytes
    server_key: bytes


@dataclass(frozen=True, slots=True)
class ScramKeys:
    """Of one token."""

    sha_256: KeyPair
    sha_512: KeyPair

    def of(self, mechanism: Mechanism) -> KeyPair:
        return self.sha_256 if mechanism is Mechanism.SHA_256 else self.sha_512


def salt_of(user: str) -> bytes:
    """The salt of a user, also of one that nobody is."""
    return sha256(f"lithify scram {user}".encode()).digest()[:_SALT_BYTES]


def key_pair(mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> KeyPair:
    """What is stored of a password of ASCII, which SASLprep leaves as it is."""
    salted = pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
    client_key = mechanism.hmac(salted, b"Client Key")
    return KeyPair(mechanism.digest(client_key), mechanism.hmac(salted, b"Server Key"))


def scram_keys(token_id: str, text: str) -> ScramKeys:
    """What is stored of the text of a token, whose id is the user. It takes some milliseconds."""
    pairs = (key_pair(mechanism, text, salt_of(token_id), ITERATIONS) for mechanism in Mechanism)
    return ScramKeys(*pairs)
