"""Those who want devices: each makes a ComposabilityRequest, changes its mind, and deletes it, over and over.

Knows requests and what became of them. Must not know managers, faults or kills.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from jackfield.cli.clock import WallClock
from jackfield.model.composition import (
    ComposabilityRequest,
    ComposabilityRequestSpec,
    RequestState,
    ScalarResource,
)
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import Key, ModelName, NodeName, Seconds, Version
from jackfield.ports import Cluster, Conflict, Gone, Merge
from storm.managers import WANTED_MAX
from storm.witness import Books

LOOK: Final = Seconds(0.1)
IMPATIENT: Final = 0.1
"""So many delete what has not come yet."""
RESIZED: Final = 0.2


class Caller:
    """Somebody who wants devices of one model on one node."""

    def __init__(self, cluster: Cluster, books: Books, node: NodeName, model: ModelName) -> None:
        self._cluster = cluster
        self._books = books
        self._node = node
        self._model = model
        self.name = f"{node}-{model.lower()}"
        self._chance = random.Random(self.name)  # noqa: S311 - no secret is made of it
        self._clock = WallClock()

    async def run(self, over: asyncio.Event) -> None:
        """Want and want no more until the storm is over; then leave it as it is."""
        while not over.is_set():
            await self._want()
            patience = self._chance.random() * 2 if self._chance.random() < IMPATIENT else float("inf")
            await self._until(self._has, over, patience)
            if self._chance.random() < RESIZED:
                await self._resize(self._chance.randint(0, WANTED_MAX))
                await self._until(self._has, over, patience)
            if not over.is_set():
                await self.leave()
                await self._until(lambda: self.name not in self._books.requests, over, float("inf"))

    async def _want(self) -> None:
        wanted = ScalarResource(
            "gpu", self._model, self._chance.randint(1, WANTED_MAX), target_node=self._node
        )
        new = ComposabilityRequest(metadata=ObjectMeta(name=self.name), spec=ComposabilityRequestSpec(wanted))
        self._books.requests[self.name] = await self._cluster.create(new)

    async def _resize(self, size: int) -> None:
        body = {"spec": {"resource": {"size": size}}}
        with suppress(Gone):
            await self._cluster.write(Merge(ComposabilityRequest, Key("", self.name), Version(""), body))

    async def leave(self) -> None:
        """Want nothing any more."""
        while True:
            try:
                now = await self._cluster.read(ComposabilityRequest, Key("", self.name))
                await self._cluster.delete(ComposabilityRequest, now.key, now.metadata.resource_version)
            except Conflict:
                continue
            except Gone:
                pass
            return

    def _has(self) -> bool:
        request = self._books.requests.get(self.name)
        return request is None or (
            request.status.state is RequestState.RUNNING
            and request.status.scalar_resource == request.spec.resource
        )

    async def _until(self, condition: Callable[[], bool], over: asyncio.Event, patience: float) -> None:
        until = self._clock.now() + patience
        while not (condition() or over.is_set() or self._clock.now() > until):
            await self._clock.sleep(LOOK)
