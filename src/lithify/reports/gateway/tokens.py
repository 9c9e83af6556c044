"""What `lithify token` prints. The field names are the JSON keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from lithify.model.access.tokens import Token
from lithify.model.settings.units import format_time
from lithify.reports.page import Page, Section, Table
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class TokenInfo(Report):
    """A token without its secret."""

    name: str
    """Who has it."""
    id: str
    grants: tuple[str, ...]
    created_at: str
    expires_at: str | None
    """Null if it never expires."""
    expired: bool

    @classmethod
    def of(cls, token: Token, now_ms: int) -> TokenInfo:
        expires_at = None if token.expires_ms is None else format_time(token.expires_ms)
        grants = tuple(map(str, token.grants))
        return cls(token.name, token.id, grants, format_time(token.created_ms), expires_at, token.is_expired(now_ms))

    @classmethod
    def listed(cls, reports: Sequence[TokenInfo]) -> Page:
        """GRANTS: what each may do, of which streams."""
        return Page("tokens", table=Table(_HEADER, reports, _row, left=_HEADER))


@dataclass(frozen=True, slots=True)
class NewToken(TokenInfo):
    """A token that was just created: the only value that has its text, which neither `repr` nor a notebook shows."""

    token: str = field(repr=False)

    def page(self) -> Page:
        facts = [(name, str(value)) for name, value in asdict(self).items() if name != "token"]
        return Page("token", sections=[Section("", facts)])

    @classmethod
    def listed(cls, reports: Sequence[TokenInfo]) -> Page:
        return TokenInfo.listed(reports)


_HEADER = ("NAME", "ID", "EXPIRES", "GRANTS")


def _row(token: TokenInfo) -> tuple[str, ...]:
    expires = "never" if token.expires_at is None else token.expires_at
    return token.name, token.id, f"{expires} (expired)" if token.expired else expires, " ".join(token.grants)
