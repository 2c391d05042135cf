"""The kubelet's calls for claims: every claim of a call is answered, each for itself, before the kubelet hangs up.

Knows the messages of NodePrepareResources and NodeUnprepareResources. Must not know how anything is prepared.
"""

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

import grpc
import grpc.aio
import msgspec
from google.protobuf.message import DecodeError, Message

from jackfield._proto import dra_pb2
from jackfield.driver.health import legible
from jackfield.driver.preparer import Answer, ClaimRef, PreparedDevice, Preparer
from jackfield.driver.turns import Turn, Turns
from jackfield.model.names import Uid
from jackfield.ports import PortError

LOG: Final = logging.getLogger(__name__)

# Names come from outside and become parts of paths: they look as the API makes them, or are refused.
NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
NAME: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
UID: Final = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]{0,62}")

# In quotes, since gRPC's classes take no parameters but in the eyes of a type checker.
Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Methods: TypeAlias = "dict[str, grpc.RpcMethodHandler[bytes, bytes]]"
M = TypeVar("M", bound=Message)


class Limits(msgspec.Struct, frozen=True):
    """How much is done at a time, and how long the kubelet is kept waiting."""

    claims: int = 1024
    """In one call."""
    side_by_side: int = 32
    """Claims that are prepared or unprepared at a time, of all calls."""
    answer_seconds: float = 43.0
    """The kubelet waits 45, and hears nothing of any claim of a call if one takes longer."""
    spare_seconds: float = 2.0
    """What is left of the caller's time when it is answered, should it wait for less than that."""


class Verb(StrEnum):
    """What the kubelet may want of a claim."""

    PREPARE = "prepare"
    UNPREPARE = "unprepare"


class Calls:
    """Answers calls by asking a preparer, claims side by side, one question at a time for each."""

    def __init__(self, preparer: Preparer, limits: Limits) -> None:
        self._preparer = preparer
        self._limits = limits
        self._turns = Turns[Answer](limits.side_by_side)

    def handlers(self) -> Methods:
        """Return who answers which method."""
        return {
            "NodePrepareResources": grpc.unary_unary_rpc_method_handler(self._prepare),
            "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(self._unprepare),
        }

    async def close(self, grace_seconds: float) -> None:
        """Wait this long for what is under way, also where nobody waits for the answer any more; cancel the rest."""
        await self._turns.close(grace_seconds)

    async def _prepare(self, request: bytes, context: Context) -> bytes:
        claims = (await read(dra_pb2.NodePrepareResourcesRequest, request, context)).claims
        answers = await self._answers(Verb.PREPARE, claims, context)
        prepared = {uid: _prepared(answer) for uid, answer in answers.items()}
        return dra_pb2.NodePrepareResourcesResponse(claims=prepared).SerializeToString()

    async def _unprepare(self, request: bytes, context: Context) -> bytes:
        claims = (await read(dra_pb2.NodeUnprepareResourcesRequest, request, context)).claims
        answers = await self._answers(Verb.UNPREPARE, claims, context)
        unprepared = {uid: _unprepared(answer) for uid, answer in answers.items()}
        return dra_pb2.NodeUnprepareResourcesResponse(claims=unprepared).SerializeToString()

    async def _answers(
        self, verb: Verb, claims: Sequence[dra_pb2.Claim], context: Context
    ) -> dict[str, Answer]:
        if len(claims) > self._limits.claims:
            words = f"{len(claims)} claims in one call; at most {self._limits.claims} are taken"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, words)
        sound, answers = _sorted_out(claims)
        turns = {claim: self._turn(verb, claim) for claim in sound}
        if tasks := [turn.task for turn in turns.values() if turn is not None]:
            await asyncio.wait(tasks, timeout=self._patience_seconds(context))
        return answers | {str(claim.uid): _answer(verb, claim, turn) for claim, turn in turns.items()}

    def _turn(self, verb: Verb, claim: ClaimRef) -> Turn[Answer] | None:
        return self._turns.take(claim.uid, (verb, claim), lambda: self._ask(verb, claim))

    async def _ask(self, verb: Verb, claim: ClaimRef) -> Answer:
        try:
            match verb:
                case Verb.PREPARE:
                    return await self._preparer.prepare(claim)
                case Verb.UNPREPARE:
                    return Answer(error=str(await self._preparer.unprepare(claim) or ""))
        except PortError as error:
            return Answer(error=str(error) or type(error).__name__)
        except Exception as error:
            LOG.exception("could not %s claim %s (%s)", verb, claim.key, claim.uid)
            words = f"could not {verb} claim {claim.key}: {type(error).__name__}: {error}; the driver's log says where"
            return Answer(error=words)

    def _patience_seconds(self, context: Context) -> float:
        left = context.time_remaining() or self._limits.answer_seconds  # a caller may wait without end
        return max(0.0, min(self._limits.answer_seconds, left - self._limits.spare_seconds))


async def read(kind: type[M], request: bytes, context: Context) -> M:
    """Return the message of a call; what is none ends the call."""
    message = kind()
    try:
        message.ParseFromString(request)
    except DecodeError:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"this is no {kind.DESCRIPTOR.name}")
    return message


def _sorted_out(claims: Iterable[dra_pb2.Claim]) -> tuple[tuple[ClaimRef, ...], dict[str, Answer]]:
    """Return the claims that can be asked about, each once, and the answers to all others."""
    sound: dict[str, ClaimRef] = {}
    refused: dict[str, Answer] = {}
    for one in claims:
        claim = ClaimRef(one.namespace, one.name, Uid(one.uid))
        if not (
            NAMESPACE.fullmatch(claim.namespace) and NAME.fullmatch(claim.name) and UID.fullmatch(claim.uid)
        ):
            told = ", ".join(repr(text[:100]) for text in (claim.namespace, claim.name, claim.uid))
            refused[one.uid] = Answer(error=f"no claim has this namespace, name and uid: {told}")
        elif sound.setdefault(one.uid, claim) != claim:
            words = f"two claims are said to have uid {claim.uid}: {sound[one.uid].key} and {claim.key}"
            refused[one.uid] = Answer(error=words)
    return tuple(claim for uid, claim in sound.items() if uid not in refused), refused


def _answer(verb: Verb, claim: ClaimRef, turn: Turn[Answer] | None) -> Answer:
    """Return what became of a claim when the kubelet's patience is at its end, or before."""
    if turn is None:
        words = f"cannot {verb} claim {claim.key} yet: what was asked before is still under way; ask again"
    elif turn.task.cancelled():
        words = f"to {verb} claim {claim.key} was broken off, since the driver ends; ask the next one"
    elif turn.task.done():
        return turn.task.result()
    elif turn.begun:
        words = f"to {verb} claim {claim.key} takes longer than a call may; it goes on, ask again"
    else:
        words = f"claim {claim.key} waits for its turn behind others that are under way; ask again"
    return Answer(error=words)


def _prepared(answer: Answer) -> dra_pb2.NodePrepareResourceResponse:
    try:
        if answer.error:
            return dra_pb2.NodePrepareResourceResponse(error=legible(answer.error))
        return dra_pb2.NodePrepareResourceResponse(devices=map(_device, answer.devices))
    except (AttributeError, TypeError, ValueError) as error:
        words = f"the driver's answer cannot be told to the kubelet: {error}"
        return dra_pb2.NodePrepareResourceResponse(error=legible(words))


def _device(one: PreparedDevice) -> dra_pb2.Device:
    return dra_pb2.Device(
        request_names=one.requests,
        pool_name=one.pool,
        device_name=one.device,
        cdi_device_ids=one.cdi,
        share_id=one.share_id or None,
    )


def _unprepared(answer: Answer) -> dra_pb2.NodeUnprepareResourceResponse:
    return dra_pb2.NodeUnprepareResourceResponse(error=legible(answer.error))
