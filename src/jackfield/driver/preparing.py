"""Claims, prepared and unprepared for the kubelet: all of a claim or nothing, and the same again when asked again.

Knows what has to be looked at, in which order, and what is undone when something fails. Must not know how the kubelet
speaks, what a device is, or how anything is written down.

Nothing is written before the driver is asked to prepare. The kubelet itself remembers that it asked: whoever ends in
between is asked again, to prepare or to unprepare, and then the claim, read from the API, tells what may be half done.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from msgspec.structs import replace

from jackfield.driver import claims
from jackfield.driver.cdi import Edits
from jackfield.driver.claims import ADMIN, Identity, Place, identity
from jackfield.driver.driver import Driver, Prepared, Share
from jackfield.driver.entry import Entry, Held, base
from jackfield.driver.preparer import Answer, ClaimRef, PreparedDevice
from jackfield.driver.writer import Writer
from jackfield.model.claim import ResourceClaim
from jackfield.ports import Cluster, Gone, PortError, Refused, Retry

LOG: Final = logging.getLogger(__name__)


class Counted(Protocol):
    """Whoever counts what is done."""

    def claim(self, operation: str, seconds: float, *, done: bool) -> None:
        """Take note that a claim was prepared or unprepared, or not."""


class Preparing:
    """Answers the kubelet (a `Preparer`): calls for different claims may overlap, those for one do not."""

    def __init__(
        self, driver: Driver, cluster: Cluster, writer: Writer, place: Place, counted: Counted
    ) -> None:
        self._driver = driver
        self._cluster = cluster
        self._store = writer.store
        self._writer = writer
        self._place = place
        self._counted = counted
        self._under_way: dict[str, Entry] = {}
        """What is being prepared, by the claim's uid: it is nobody else's already."""
        self._unwritten: dict[str, Entry] = {}
        """What is prepared and could not be written down. A life that ends with it leaves it to `restore`."""

    async def prepare(self, claim: ClaimRef) -> Answer:
        """Prepare the claim's devices, all or none."""
        with self._timed("prepare"):
            return await self._prepare(claim)

    async def unprepare(self, claim: ClaimRef) -> str:
        """Undo it, from what is remembered: the claim may be gone from the API."""
        with self._timed("unprepare"):
            entry = self._remembered(claim)
            if entry is not None:
                shares = [claims.remembered(entry, held, self._place.published) for held in entry.held]
            else:
                shares = await self._half_prepared(claim)
            await self._undo(shares)
            await self._writer.remove(claim.uid)
            self._unwritten.pop(claim.uid, None)
            return ""

    async def _prepare(self, ref: ClaimRef) -> Answer:
        entry = self._remembered(ref)
        try:
            claim = await self._cluster.read(ResourceClaim, ref.key)
        except Gone as error:
            raise Refused(f"claim {ref.key} does not exist (any more); the pod cannot start") from error
        except Retry:
            if entry is None:
                raise
            # It was sound when it was prepared; containers start again while the API is away.
            return await self._answer(entry)
        known = {identity(held): held for held in entry.held} if entry is not None else {}
        shares = claims.shares(claim, ref.uid, self._place, known)
        if entry is not None:
            # The claim was allocated anew, and the kubelet does not know any more that it had something else.
            wanted = [identity(one) for one in shares]
            past = [held for key, held in known.items() if key not in wanted]
            await self._undo([claims.remembered(entry, held, self._place.published) for held in past])
        with self._reserved(ref, shares):
            held = await self._held(shares, known)
            if not held:
                await self._writer.remove(ref.uid)
                self._unwritten.pop(ref.uid, None)
                return Answer()
            new = Entry(ref.uid, ref.key, held, claims.pod_claim_name(claim))
            try:
                return await self._answer(new)
            except Refused as refused:
                # It cannot ever be written as it is: the driver has to be asked again, for something else.
                self._unwritten.pop(ref.uid, None)
                before = self._store.get(ref.uid)
                known = {identity(one): one for one in before.held} if before is not None else {}
                tried = [one for one in shares if identity(one) not in known]
                raise Refused(await self._undone(tried, str(refused))) from refused

    def _remembered(self, ref: ClaimRef) -> Entry | None:
        """Return what is prepared for a claim, as far as we know."""
        # What could not be written is newer than what is.
        return self._unwritten.get(ref.uid) or self._store.get(ref.uid)

    async def _answer(self, entry: Entry) -> Answer:
        # Until it is written it is not told. What cannot be written stays prepared, and is remembered here: the kubelet
        # asks again, to prepare or to unprepare, and the claim may be gone from the API by then.
        self._unwritten[entry.uid] = entry
        ids = await self._writer.put(entry)
        del self._unwritten[entry.uid]
        return Answer(
            tuple(
                PreparedDevice(
                    # Pods know requests, not the alternatives among which the scheduler chose.
                    tuple(dict.fromkeys(base(one) for one in held.requests)),
                    held.pool,
                    held.device,
                    names,
                    held.share_id,
                )
                for held, names in zip(entry.held, ids, strict=True)
            )
        )

    @contextmanager
    def _reserved(self, ref: ClaimRef, shares: tuple[Share, ...]) -> Iterator[None]:
        """Keep the devices from other claims. Raises Refused where another one has them."""
        others = self._others()
        for share in shares:
            for entry in others:
                if claims.in_the_way(share, entry):
                    raise Refused(
                        f"device {share.device} of pool {share.pool} is still prepared for claim {entry.claim} "
                        f"({entry.uid}); it has to be unprepared first, which the kubelet does when its pods are gone"
                    )
        mine = tuple(_held(share, Prepared()) for share in shares)
        self._under_way[ref.uid] = Entry(ref.uid, ref.key, mine)
        try:
            yield
        finally:
            del self._under_way[ref.uid]

    async def _held(self, shares: tuple[Share, ...], known: dict[Identity, Held]) -> tuple[Held, ...]:
        held: list[Held] = []
        tried: list[Share] = []
        for share in shares:
            if identity(share) in known:
                held.append(replace(known[identity(share)], requests=share.requests))
                continue
            tried.append(share)
            try:
                held.append(_held(share, await self._driver.prepare(share)))
            except Exception as error:
                words = _words(f"device {share.device} could not be prepared", error)
                raise Refused(await self._undone(tried, words)) from error
        return tuple(held)

    async def _undone(self, tried: list[Share], words: str) -> str:
        """Undo what was tried, and return why, with what could not be undone."""
        try:
            await self._undo(tried)
        except Refused as second:
            return f"{words}; {second}"
        return words

    async def _half_prepared(self, ref: ClaimRef) -> list[Share]:
        """Return what a claim may have had prepared by a life of ours that ended before it was remembered."""
        try:
            claim = await self._cluster.read(ResourceClaim, ref.key)
            shares = claims.shares(claim, ref.uid, self._place)
        except (Gone, Refused):
            return []
        others = self._others()
        return [one for one in shares if not any(claims.in_the_way(one, entry) for entry in others)]

    def _others(self) -> tuple[Entry, ...]:
        return (*self._store.entries(), *self._under_way.values(), *self._unwritten.values())

    async def _undo(self, shares: list[Share]) -> None:
        """Unprepare all, the last first, whatever becomes of each. Raises Refused with what could not be undone."""
        wrong: list[str] = []
        for share in reversed(shares):
            try:
                await self._driver.unprepare(share)
            except Exception as error:  # noqa: BLE001 - a driver may raise anything; the others are undone
                wrong.append(_words(f"device {share.device} could not be unprepared", error))
        if wrong:
            raise Refused("; ".join(wrong))

    @contextmanager
    def _timed(self, operation: str) -> Iterator[None]:
        began, done = asyncio.get_running_loop().time(), False
        try:
            yield
            done = True
        finally:
            self._counted.claim(operation, asyncio.get_running_loop().time() - began, done=done)


def _held(share: Share, prepared: object) -> Held:
    """Return what to remember of a share; a driver may return edits alone."""
    match prepared:
        case Edits():
            prepared = Prepared(edits=prepared)
        case Prepared():
            pass
        case _:
            kind = type(prepared).__name__
            raise Refused(f"the driver's prepare returned {kind}; it takes Edits or Prepared")
    return Held(
        requests=share.requests,
        pool=share.pool,
        device=share.device,
        share_id=share.share_id,
        physical=prepared.physical,
        edits=prepared.edits,
        cdi=prepared.cdi,
        notes={**prepared.notes, **({ADMIN: "true"} if share.admin_access else {})},
        attributes=share.published.attributes if share.published is not None else {},
        network=prepared.network,
    )


def _words(what: str, error: Exception) -> str:
    """Return an error in words; of one that nobody foresaw the log has the place."""
    if isinstance(error, PortError):
        return f"{what}: {error}"
    LOG.error("%s", what, exc_info=error)
    return f"{what}: {type(error).__name__}: {error}"
