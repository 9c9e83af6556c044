"""The list of topics, which is sent in pages: a topic that is not on the page costs next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

from lithify.model.topic.state import TopicState
from lithify.ports.store import LogStore
from lithify.reports.topics import TopicInfo
from lithify.service.look.status import infos_of


@dataclass(frozen=True, slots=True, eq=False)
class ListedTopics(Sequence[TopicInfo]):
    """Topics in the order of the list. What is told of one is made when it is asked for."""

    states: Sequence[TopicState]
    store: LogStore

    def __len__(self) -> int:
        return len(self.states)

    @overload
    def __getitem__(self, at: int) -> TopicInfo: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[TopicInfo, ...]: ...

    def __getitem__(self, at: int | slice) -> TopicInfo | tuple[TopicInfo, ...]:
        if isinstance(at, int):
            return self[at : at + 1 or None][0]
        return infos_of(self.store, self.states[at])

    def of_streams(self, may_see: Callable[[str], bool]) -> ListedTopics:
        """The topics of some streams, by their stored names."""
        seen = {stream: may_see(stream) for stream in {state.name.stream for state in self.states}}
        return ListedTopics([state for state in self.states if seen[state.name.stream]], self.store)
