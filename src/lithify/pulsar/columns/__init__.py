"""Many entries at once: their messages as columns, and batches without some of their messages."""

from lithify.pulsar.columns.binary import numbers_as_fields
from lithify.pulsar.columns.damage import Damage
from lithify.pulsar.columns.details import chunks_of, properties_of, sequence_ids_of, values_of
from lithify.pulsar.columns.entry_messages import messages_of
from lithify.pulsar.columns.messages import Messages
from lithify.pulsar.columns.rewriting import rewritten, without
from lithify.pulsar.format.kinds import Kind

__all__ = [
    "Damage",
    "Kind",
    "Messages",
    "chunks_of",
    "messages_of",
    "numbers_as_fields",
    "properties_of",
    "rewritten",
    "sequence_ids_of",
    "values_of",
    "without",
]
