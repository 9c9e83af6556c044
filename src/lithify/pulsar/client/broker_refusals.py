"""What a broker's errors are in Lithify's tree, and which of them pass.

the client cannot help it now   `TransientBrokerError`   gone, starting, moving the topic, overloaded
it never will                   `BrokerError`            no rights, not known, not understood
"""

from __future__ import annotations

import re
from typing import Final

from lithify.errors import BrokerError, LithifyError, SubscriptionBusyError, UnknownSourceError
from lithify.errors.redaction import one_line

NAMES: Final = (
    "UnknownError",
    "MetadataError",
    "PersistenceError",
    "AuthenticationError",
    "AuthorizationError",
    "ConsumerBusy",
    "ServiceNotReady",
    "ProducerBlockedQuotaExceededError",
    "ProducerBlockedQuotaExceededException",
    "ChecksumError",
    "UnsupportedVersionError",
    "TopicNotFound",
    "SubscriptionNotFound",
    "ConsumerNotFound",
    "TooManyRequests",
    "TopicTerminatedError",
    "ProducerBusy",
    "InvalidTopicName",
    "IncompatibleSchema",
    "ConsumerAssignError",
    "TransactionCoordinatorNotFound",
    "InvalidTxnStatus",
    "NotAllowedError",
    "TransactionConflict",
    "TransactionNotFound",
    "ProducerFenced",
)
"""By number, as Pulsar has them."""

PASSING: Final = ("UnknownError", "MetadataError", "PersistenceError", "ServiceNotReady", "TooManyRequests")
TEXT_CHARACTERS: Final = 500

SEALED_END: Final = "Failed to read last entry of the compacted Ledger"
"""What Pulsar 4.2 answers with where it cannot open the last entry of a view, as when that is encrypted, and why."""
OF_BOOKIES: Final = re.compile(r"bookie|ledger|zookeeper|time(d )?out|connect", re.IGNORECASE)
"""Words of reasons that pass."""


class TransientBrokerError(BrokerError):
    """A broker that went away, is not reached or cannot answer now: another try may succeed."""


class SealedEndError(BrokerError):
    """The broker cannot open the last entry of a view, which is encrypted, and nothing is behind the view."""


def refusal(error: int, text: str, where: str) -> LithifyError:
    """The error for what a broker refused: its number, what it said, and of which topic and broker."""
    name = NAMES[error] if 0 <= error < len(NAMES) else f"error {error}"
    message = f"{where}: the broker refused with {name}: {one_line(text, TEXT_CHARACTERS)}".rstrip(": ")
    if name == "ConsumerBusy":
        return SubscriptionBusyError(message, hint="wait until the other consumer has ended")
    if name in ("TopicNotFound", "InvalidTopicName"):
        return UnknownSourceError(message, hint="check tenant, namespace and topic")
    if name in ("AuthenticationError", "AuthorizationError"):
        return BrokerError(message, hint="check authPlugin and authParams, and the rights of this role on the topic")
    if text.startswith(SEALED_END) and not OF_BOOKIES.search(text.removeprefix(SEALED_END)):
        hint = "readers of the compacted view fail too, until the topic gets a message; Pulsar 4.0 can open such a view"
        return SealedEndError(message, hint=hint)
    return TransientBrokerError(message) if name in PASSING else BrokerError(message)
