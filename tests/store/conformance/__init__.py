"""What every store must do: one suite, inherited by a test class per store.

A subclass gives the fixture `place`: a `support.store.builders.Place` on a warehouse that is empty.
"""

from store.conformance.change_tokens import ChangeTokenRules
from store.conformance.commits import CommitRules
from store.conformance.expiring import ExpiryRules
from store.conformance.failures import FailureRules
from store.conformance.files import FileRules
from store.conformance.rates import RatesRules
from store.conformance.reports import ReportRules
from store.conformance.sweeping import SweepRules
from store.conformance.topics import TopicRules
from store.conformance.versions import VersionRules
from store.conformance.views import ViewRules


class StoreConformance(
    TopicRules,
    ChangeTokenRules,
    CommitRules,
    FileRules,
    ViewRules,
    VersionRules,
    ExpiryRules,
    SweepRules,
    ReportRules,
    RatesRules,
    FailureRules,
):
    """All of it."""


__all__ = ["StoreConformance"]
