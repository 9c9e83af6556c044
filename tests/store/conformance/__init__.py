"""What every store must do: one suite, inherited by a test class per store.

A subclass gives the fixture `place`: a `support.store.builders.Place` on a warehouse that is empty.
"""

from store.conformance.change_tokens import ChangeTokenRules
from store.conformance.commits import CommitRules
from store.conformance.documents import DocumentRules
from store.conformance.expiring import ExpiryRules
from store.conformance.files import FileRules
from store.conformance.many import ManyRules
from store.conformance.replicas import ReplicaRules
from store.conformance.streams import StreamRules
from store.conformance.sweeping import SweepRules
from store.conformance.topics import TopicRules
from store.conformance.versions import VersionRules
from store.conformance.views import ViewRules


class StoreConformance(
    TopicRules,
    ReplicaRules,
    StreamRules,
    ChangeTokenRules,
    CommitRules,
    ViewRules,
    VersionRules,
    ExpiryRules,
    SweepRules,
    DocumentRules,
):
    """All of the store."""


__all__ = ["FileRules", "ManyRules", "StoreConformance"]
