"""What went wrong on a node and people must know, as Events of the Node: told once, and never waited for.

Knows how such an Event is named and written. Must not know what went wrong.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from jackfield.model.event import Event, EventSource, ObjectReference
from jackfield.model.meta import ObjectMeta
from jackfield.model.names import NodeName, Seconds, named, rfc3339
from jackfield.model.node import Node
from jackfield.ports import Cluster, Conflict, PortError, Retry

LOG: Final = logging.getLogger(__name__)
NAMESPACE: Final = "default"
"""Of Events about what has none."""
MESSAGE_BYTES_MAX: Final = 1024
DIGEST_LENGTH: Final = 12
NAME_MAX: Final = 253
TRIES_MAX: Final = 60
"""How often an API server that is away is asked, before an Event is given up: the log has the words in any case."""
DAMAGED: Final = "CheckpointDamaged"
ADVICE: Final = (
    "Claims that were prepared here may be forgotten. Their pods run on; delete them when it suits, and the kubelet"
    " has the claims unprepared. Look after the disk. docs/prepared-claims.md says more."
)


class Notices:
    """Events of one node by one driver: `tell` them, and have `run` write them."""

    def __init__(
        self,
        cluster: Cluster,
        node: NodeName,
        driver: str,
        now: Callable[[], float] = time.time,  # noqa: TID251 - the time of day, for people; in no simulator
    ) -> None:
        self._cluster = cluster
        self._node = node
        self._driver = driver
        self._now = now
        self._untold: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def damaged(self, findings: Sequence[str]) -> None:
        """Have it told that the checkpoint was damaged; nothing is told where nothing was found."""
        if findings:
            advice = f". {ADVICE}"
            room = MESSAGE_BYTES_MAX - len(advice.encode())
            words = f"{self._driver}: {'; '.join(findings)}".encode()[:room].decode(errors="ignore")
            self._untold.put_nowait((DAMAGED, f"{words}{advice}"))

    async def run(self) -> None:
        """Write what was told, until cancelled."""
        while True:
            reason, words = await self._untold.get()
            try:
                await self._say(reason, words)
            except PortError as error:
                LOG.warning("%s could not be told as an Event of node %s: %s", reason, self._node, error)
            self._untold.task_done()

    async def told(self) -> None:
        """Wait until all is written, or given up."""
        await self._untold.join()

    async def _say(self, reason: str, words: str) -> None:
        for tried in range(1, TRIES_MAX + 1):
            try:
                await self._create(reason, words)
            except Conflict:
                return  # it was told already, in an earlier life of ours
            except Retry as retry:
                if tried == TRIES_MAX:
                    raise
                await asyncio.wait((asyncio.get_running_loop().create_future(),), timeout=float(retry.after))
            else:
                return

    async def _create(self, reason: str, words: str) -> None:
        node = await self._cluster.read(Node, named(self._node))
        at = rfc3339(Seconds(self._now()))
        # The same words by the same driver about the same node have the same name: told twice they are refused.
        digest = hashlib.sha256(f"{node.uid}/{self._driver}/{reason}/{words}".encode()).hexdigest()
        stem = self._node[: NAME_MAX - DIGEST_LENGTH - 1].rstrip("-.")
        await self._cluster.create(
            Event(
                metadata=ObjectMeta(name=f"{stem}.{digest[:DIGEST_LENGTH]}", namespace=NAMESPACE),
                involved_object=ObjectReference(
                    api_version="v1", kind=Node.__name__, name=self._node, uid=node.uid
                ),
                type="Warning",
                reason=reason,
                message=words,
                source=EventSource(self._driver),
                first_timestamp=at,
                last_timestamp=at,
            )
        )
