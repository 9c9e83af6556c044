"""Tokens of the gateways of one warehouse, in the database that they share: the catalog's, or one that they name.

The first token creates the tables, so that a gateway which only reads them needs no right to create one. A token of the
database counts for one warehouse: another one that shares the database has tokens of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, select

from lithify.coordination.leases.lease_transactions import (
    Transactions,
    has_table,
    is_granted,
    make_table,
    required_database,
)
from lithify.coordination.leases.stored_rows import checked
from lithify.coordination.leases.tables.scram_keys import SCRAM_KEYS, scram_keys_of, scram_row
from lithify.coordination.leases.tables.tokens import TOKENS, token_of, token_row
from lithify.errors import RefusedError
from lithify.model.access.tokens import Token
from lithify.model.formats.warehouse_scope import WarehouseScope

TOKENS_AT_MOST = 10_000
"""Of one warehouse: a gateway has all of them in memory."""


class SqlTokens:
    """The tokens of one warehouse."""

    def __init__(self, transactions: Transactions, scope: str) -> None:
        self._transactions, self._scope = transactions, scope
        self._ours = TOKENS.c.scope == scope

    def all(self) -> tuple[Token, ...]:
        """All of them, also expired ones, by name. Raises `CoordinationError`."""
        wanted = select(TOKENS).where(self._ours).order_by(TOKENS.c.name)
        more = select(SCRAM_KEYS).where(SCRAM_KEYS.c.scope == self._scope)

        def read(connection: Connection) -> tuple[Sequence[Any], Sequence[Any]]:
            if not has_table(connection, TOKENS):
                return (), ()
            # First the tokens: one that is created meanwhile would be without its keys.
            tokens, keys = connection.execute(wanted).all(), list[Any]()
            if has_table(connection, SCRAM_KEYS):  # whose owner may have granted nothing on it to a gateway yet
                is_granted(lambda: keys.extend(connection.execute(more)), connection)
            return tokens, keys

        self._transactions.check_there()
        rows, key_rows = self._transactions.done(read)
        keys = {row.token_id: scram_keys_of(row) for row in checked(key_rows, SCRAM_KEYS)}
        return tuple(token_of(row, keys.get(row.id)) for row in checked(rows, TOKENS))

    def add(self, token: Token) -> bool:
        """Stores a token; False if there is one of that name. Raises `RefusedError` if there are too many."""
        row = token_row(token, self._scope)
        insert = self._transactions.insert_into(TOKENS).values(row).on_conflict_do_nothing()
        count = select(func.count()).select_from(TOKENS).where(self._ours)
        stored = select(TOKENS).where(self._ours, TOKENS.c.name == token.name)
        keys = None if token.scram is None else scram_row(token.scram, token.id, self._scope)
        more = self._transactions.insert_into(SCRAM_KEYS).on_conflict_do_nothing()

        def add(connection: Connection) -> tuple[bool, bool]:
            make_table(connection, TOKENS)
            if connection.execute(count).scalar_one() >= TOKENS_AT_MOST:
                return False, True
            connection.execute(insert)
            # Compared, not counted: a transaction that is done twice finds its own row.
            is_added = dict(connection.execute(stored).one()._mapping) == row
            if is_added and keys is not None:
                make_table(connection, SCRAM_KEYS)
                connection.execute(more, keys)
            return is_added, False

        added, too_many = self._transactions.done(add)
        if too_many:
            raise RefusedError(
                f"there are {TOKENS_AT_MOST:,} tokens already", hint="revoke some: `lithify token list` prints them"
            )
        return added

    def remove(self, name: str) -> None:
        """Removes the token of that name, if there is one."""

        def remove(connection: Connection) -> None:
            if not has_table(connection, TOKENS):
                return
            if has_table(connection, SCRAM_KEYS):
                ids = select(TOKENS.c.id).where(self._ours, TOKENS.c.name == name)
                ours = SCRAM_KEYS.c.scope == self._scope
                connection.execute(delete(SCRAM_KEYS).where(ours, SCRAM_KEYS.c.token_id.in_(ids)))
            connection.execute(delete(TOKENS).where(self._ours, TOKENS.c.name == name))

        self._transactions.done(remove)


def open_tokens(url: str | None, catalogs: Engine | None, scope: WarehouseScope) -> SqlTokens:
    """The tokens of a warehouse, in the database at `url`, else in the catalog's own; connects to none yet.

    Raises `RefusedError` if there is no database that processes share, `CoordinationError` for an invalid URL.
    """
    return SqlTokens(required_database(url, catalogs, scope.where, "tokens need an SQL database"), scope.name)
