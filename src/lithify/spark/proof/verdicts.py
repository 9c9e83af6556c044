"""The proofs of `verify` as Spark expressions, which find wrong records (C4, C10, C16, C18, C20, C24, C53).

    one row per record and proof ─► by (proof, key) ─► per offset: present before, after, equal?
                                                              └► per key: which one wins?  ─► kind of finding

One shuffle, by exact key; if no round ran, keys do not matter and rows are grouped by offset. Rows of a key
are sorted so that those above the horizon come first, then the winner, then the rest. A chunk of a large message is a
row of its key, though it has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from lithify.model.finding import FindingKind
from lithify.model.settings.table import ByColumn, ByHeader, Order
from lithify.rules.proof.transition import Proof

WAITS, COMPETES, NEITHER = 0, 1, 2

_RULES_DDL = (
    "proof int, judged boolean, ranked_by int, visible_from long, known_from long, "
    "known_up_to long, cut_at long, tail_stays boolean, asked_up_to long, empty_is_tombstone boolean, log_start long, "
    "horizon long, keep_keyless boolean, expire_below long, values_before long"
)


def header_names(proofs: Sequence[Proof]) -> list[str]:
    """Names, sorted, of the headers that hold orders; the elements of a row's `orders` follow them."""
    return sorted({order.name for order in _orders(proofs) if isinstance(order, ByHeader)})


def _orders(proofs: Sequence[Proof]) -> list[Order]:
    """What decides before the offset, in any of the proofs; `ranked_by` of a proof's rules is an index of it."""
    return sorted({c.rules.order for c in proofs if c.rules is not None and c.rules.order is not None}, key=str)


def rules_frame(session: SparkSession, proofs: Sequence[Proof]) -> DataFrame:
    """The rules of each proof, one row per proof, which its index in `proofs` identifies."""
    orders = _orders(proofs)
    rows = [_rules_row(number, proof, orders) for number, proof in enumerate(proofs)]
    return F.broadcast(session.createDataFrame(rows, _RULES_DDL))


def _rules_row(number: int, how: Proof, orders: Sequence[Order]) -> tuple[object, ...]:
    rules = how.rules
    shared = (how.visible_from, how.known_from, how.known_up_to, how.cut_at, how.tail_stays, how.asked_up_to)
    if rules is None:
        return number, False, None, *shared, how.empty_is_tombstone, 0, 0, False, 0, None
    return (
        number,
        True,
        None if rules.order is None else orders.index(rules.order),
        *shared,
        how.empty_is_tombstone,
        rules.log_start,
        rules.horizon,
        rules.keep_keyless,
        rules.tombstones_expire_below,
        rules.values_expire_before_ms,
    )


def verdicts(rows: DataFrame, rules: DataFrame, proofs: Sequence[Proof], *, partitions: int, secret: str) -> DataFrame:
    """A lazy frame (proof, offset, finding) of all wrong records.

    `rows` have a proof, `before`, `after`, and the columns of `DIGESTS`; a non-null `about` is returned as the
    finding. `rules` is `rules_frame` of `proofs`. `secret` is hashed with each offset, so that an attacker who
    does not know it cannot choose records that make grouping slow.
    """
    rows_by_key = _by_key(_by_offset(rows, rules, _order(proofs), partitions, secret), rules, proofs)
    # Columns that only the verdict needs are joined last, so that they are neither shuffled nor sorted.
    kinds = rows_by_key.join(rules, "proof", "left").select(
        "proof", "offset", F.coalesce("about", _verdict()).alias("finding")
    )
    return kinds.filter(F.col("finding").isNotNull())


def _order(proofs: Sequence[Proof]) -> Column:
    """The number by which a row competes, 0 if the offset alone decides in its proof (C10)."""
    headers, rank = header_names(proofs), F.lit(0)
    for number, order in enumerate(_orders(proofs)):
        rank = F.when(F.col("ranked_by") == number, _number(order, headers)).otherwise(rank)
    return rank


def _number(order: Order, headers: Sequence[str]) -> Column:
    """As `survivor_rules.order_of` says it of one record."""
    match order:
        case ByColumn(name):
            return F.col(name)
        case ByHeader(name):
            return F.get("orders", F.lit(headers.index(name)))
        case _:
            assert_never(order)  # mypy takes a Column for anything, and would ask for no return


def _by_offset(rows: DataFrame, rules: DataFrame, order: Column, partitions: int, secret: str) -> DataFrame:
    """One row per offset of a proof, whichever of the versions have the record."""
    key = F.when(F.col("judged"), F.coalesce("key", "chunk_key"))
    keyed = rows.join(rules.select("proof", "judged", "ranked_by"), "proof", "left").select(
        "proof",
        key.alias("key"),
        # Spreads rows without a key over tasks; else all of them would be in one.
        F.when(key.isNull(), F.col("offset")).otherwise(F.lit(-1)).alias("alone"),
        "offset",
        # Spark's hash for grouping has no seed; a secret column before the key makes it unpredictable.
        F.xxhash64(F.lit(secret), "offset").alias("unforeseen"),
        "about",
        "before",
        F.col("after").cast("int").alias("after"),
        "digest",
        "value_size",
        F.when(F.col("before"), F.col("timestamp")).alias("timestamp"),
        F.when(F.col("before"), order).alias("order"),
        (F.col("key").isNotNull()).alias("has_key"),
        F.coalesce("passed_through", F.lit(False)).alias("passed_through"),
    )
    return (
        keyed.repartition(partitions, "proof", "key", "alone")
        .groupBy("unforeseen", "proof", "key", "alone", "offset", "about")
        .agg(
            F.max("before").alias("before"),
            F.sum("after").alias("copies"),
            F.min("digest").alias("lowest_digest"),
            F.max("digest").alias("highest_digest"),
            F.max("value_size").alias("value_size"),
            F.max("timestamp").alias("timestamp"),
            F.max("order").alias("order"),
            F.max("has_key").alias("has_key"),
            F.max("passed_through").alias("passed_through"),
        )
        .drop("unforeseen")
    )


def _by_key(by_offset: DataFrame, rules: DataFrame, proofs: Sequence[Proof]) -> DataFrame:
    """Adds `wins`, whether the row wins its key, and `held`, whether its order is higher than a row's above the
    horizon (C9, C10, C20), or a chunk of its key was below (C53). `held_then` is the same with only rows below
    `asked_up_to`, and chunks that remain."""
    none = F.lit(False)
    if all(c.rules is None for c in proofs):
        return by_offset.withColumns({"wins": none, "held": none, "held_then": none})
    offset, competes = F.col("offset"), F.col("before") & F.col("key").isNotNull()
    rank = (
        F.when(competes & (offset >= F.col("horizon")), F.lit(WAITS))
        .when(competes & F.col("has_key") & (offset >= F.col("log_start")), F.lit(COMPETES))
        .otherwise(F.lit(NEITHER))
    )
    bounds = rules.select("proof", "log_start", "horizon", "asked_up_to", "values_before")
    hides = competes & ~F.col("has_key") & (offset < F.col("horizon"))  # a chunk
    ranked = by_offset.join(bounds, "proof", "left").select(
        *by_offset.columns,
        rank.alias("rank"),
        (offset < F.col("asked_up_to")).alias("asked"),
        hides.alias("hides"),
        (hides & (offset >= F.col("log_start")) & ~_past_retention()).alias("hides_still"),
        F.xxhash64("proof", "key", "alone").alias("spread"),
    )
    # The hash comes first so that sorting compares numbers; the key still decides.
    by_offset_alone = not _orders(proofs)
    order = [F.col("rank"), *([] if by_offset_alone else [F.col("order").desc_nulls_last()]), offset.desc()]
    of_key = Window.partitionBy("spread", "proof", "alone", "key").orderBy(*order)
    above = of_key.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    first = F.coalesce(F.lag("rank").over(of_key), F.lit(WAITS)) == WAITS
    waits = F.col("rank") == WAITS
    held = none if by_offset_alone else _is_above_one(waits, above)
    held_then = none if by_offset_alone else _is_above_one(waits & F.col("asked"), above)
    if any(source.segment.chunks for c in proofs for source in c.before):
        everywhere = Window.partitionBy("spread", "proof", "alone", "key")
        held = held | F.max("hides").over(everywhere)
        held_then = held_then | F.max("hides_still").over(everywhere)
    return ranked.select(
        *by_offset.columns,
        ((F.col("rank") == COMPETES) & first).alias("wins"),
        held.alias("held"),
        held_then.alias("held_then"),
    )


def _is_above_one(waits: Column, above: Window) -> Column:
    """Whether a row's order is higher than the order of a row above the horizon; null is the lowest (C10)."""
    lowest = F.min(F.when(waits, F.col("order"))).over(above)
    unordered = F.max(waits & F.col("order").isNull()).over(above)
    is_above = unordered | (lowest < F.col("order"))
    return F.coalesce(F.col("order").isNotNull() & is_above, F.lit(False))


def _verdict() -> Column:
    """The kind of finding for one record, or null if it is correct."""
    offset, there = F.col("offset"), F.col("copies") > 0
    known = (offset >= F.col("known_from")) & (offset < F.col("known_up_to"))
    stays = ~F.col("judged") | (offset >= F.col("horizon"))
    return (
        F.when((offset >= F.col("cut_at")) | (offset < F.col("visible_from")), _none())
        .when(F.col("lowest_digest") != F.col("highest_digest"), _kind(FindingKind.RECORD_ALTERED))
        .when(F.col("copies") > 1, _kind(FindingKind.RECORD_DUPLICATED))
        .when(~F.col("before"), F.when(known, _kind(FindingKind.RECORD_UNKNOWN)))
        .when(stays, F.when(~there & F.col("tail_stays"), _gone()))
        .when(offset < F.col("log_start"), _none())
        .otherwise(F.when(there, _stayed()).otherwise(_went()))
    )


def _tombstone() -> Column:
    empty = F.col("empty_is_tombstone") & (F.col("value_size") == 0)
    return F.col("has_key") & (F.col("value_size").isNull() | empty)


def _droppable_keyless() -> Column:
    return ~F.col("has_key") & ~F.col("keep_keyless") & ~F.col("passed_through")  # C16, C53


def _gone() -> Column:
    lost = _kind(FindingKind.RECORD_LOST)
    return F.when(_tombstone(), _kind(FindingKind.TOMBSTONE_REMOVED_EARLY)).otherwise(lost)


def _expired() -> Column:
    return F.col("offset") < F.col("expire_below")


def _past_retention() -> Column:
    return F.coalesce(F.col("timestamp") < F.col("values_before"), F.lit(False))


def _stayed() -> Column:
    """The finding for a record below the horizon that is still present, or null."""
    return (
        F.when(F.col("has_key") & ~F.col("wins"), _kind(FindingKind.SUPERSEDED_KEPT))
        .when(_droppable_keyless(), _kind(FindingKind.KEYLESS_KEPT))
        .when(_tombstone(), F.when(_expired() & ~F.col("held"), _kind(FindingKind.EXPIRED_TOMBSTONE_KEPT)))
        .when(_past_retention(), _kind(FindingKind.PAST_RETENTION_KEPT))
    )


def _went() -> Column:
    """The finding for a record below the horizon that is no longer present, or null."""
    return (
        F.when(F.col("has_key") & ~F.col("wins"), _none())
        .when(_droppable_keyless(), _none())
        .when(_tombstone(), F.when(~_expired() | F.col("held_then"), _gone()))
        .when(~_past_retention(), _gone())
    )


def _none() -> Column:
    return F.lit(None).cast("string")


def _kind(kind: FindingKind) -> Column:
    return F.lit(kind.value)
