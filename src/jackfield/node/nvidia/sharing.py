"""The GPUs of a node, shared as their operator says: what a driver on the kit publishes and prepares.

What a claim holds is remembered in the notes that the kit keeps for it, so that nothing is lost over restarts. All
calls but `pool` block, for as long as the driver takes: call them from a thread; those about one GPU wait for each
other. Knows who holds what. Must not know what that takes, which `core.share` decides, nor how a driver is asked.
"""

from collections.abc import Callable, Iterable
from threading import Lock

import msgspec

from jackfield.core import share
from jackfield.core.offer import Pool
from jackfield.core.share import Given, Gpu, Holding, Sharing, Source
from jackfield.driver.cdi import Edits, Mount
from jackfield.driver.driver import Prepared, Share
from jackfield.model.names import PhysicalID
from jackfield.node.nvidia.calls import Hands, bring_about
from jackfield.node.nvidia.mps import FOLDER
from jackfield.node.nvidia.toolkit import qualified
from jackfield.ports import Bug, Gone, PortError, Refused

NOTE = "gpu"
"""The note that says of which GPU what is held."""
_MOUNT_OPTIONS = ("rw", "nosuid", "nodev", "bind")
_ENOUGH = 8

Key = tuple[str, str, str]


class Note(msgspec.Struct, frozen=True):
    """What is remembered of a prepared share."""

    gpu: str
    held: Holding


class Settings(msgspec.Struct, frozen=True):
    """How GPUs are shared and shown."""

    sharing: Sharing = share.Sharing()
    mps_folder: str = str(FOLDER)
    generate: Callable[[], None] | None = None
    """Has the vendor's CDI specification written anew, after a partition came or went; None where there is none."""


def name_of(gpu: Gpu) -> str:
    """Return the name of a GPU in a slice: the same for its life, wherever it is plugged in."""
    return f"gpu-{gpu.uuid.removeprefix('GPU-')[:_ENOUGH]}".lower()


class SharedGpus:
    """The GPUs of a node, and who holds what of them."""

    def __init__(self, hands: Hands, settings: Settings = Settings()) -> None:
        self._hands = hands
        self._settings = settings
        self._notes: dict[Key, Note] = {}
        self._locks: dict[str, Lock] = {}

    def pool(self) -> tuple[Pool, tuple[str, ...]]:
        """Return what is published, and what could not be, in words for the operator."""
        offers = [share.offer(self._source(gpu), self._settings.sharing) for gpu in self._hands.driver.gpus()]
        devices = tuple(device for one in offers for device in one.devices)
        counters = tuple(counters for one in offers for counters in one.counters)
        return Pool(devices, counters), tuple(words for one in offers for words in one.problems)

    def restore(self, shares: Iterable[Share]) -> tuple[str, ...]:
        """Take up what was prepared in an earlier life, and what it needs that died since, such as MPS daemons.

        Returns what could not be had again, in words: the others go on.
        """
        for one in shares:
            if NOTE in one.notes:
                self._notes[_key(one)] = msgspec.json.decode(one.notes[NOTE], type=Note)
        wrong: list[str] = []
        for uuid in dict.fromkeys(note.gpu for note in self._notes.values()):
            try:
                with self._lock(uuid):
                    bring_about(self._hands, uuid, self._held(uuid))
            except PortError as error:
                wrong.append(str(error))
        return tuple(wrong)

    def prepare(self, one: Share) -> Prepared:
        """Bring about what the claim was given. Raises Refused with the reason, Retry, Gone."""
        source, key = self._find(one.device), _key(one)
        parameters = msgspec.json.encode(one.config[-1]) if one.config else b""
        given = Given(one.uid, one.device, one.share_id, one.consumed_capacity, parameters)
        new = share.holding(source, self._settings.sharing, given)
        if isinstance(new, share.Refusal):
            raise Refused(new.what)
        note, before = Note(source.gpu.uuid, new), self._notes.get(key)
        # Ours from before it exists: what is published meanwhile must not take it for a stranger's.
        self._notes[key] = note
        try:
            with self._lock(note.gpu):
                gpu = bring_about(self._hands, note.gpu, self._held(note.gpu, key), new=new)
        except PortError:
            self._put_back(key, before)
            raise
        if before is None and new.partition is not None:
            self._generate()
        shown = share.exposure(gpu, new, self._settings.mps_folder)
        if isinstance(shown, share.Refusal):
            raise Bug(shown.what)
        return Prepared(
            edits=_edits(shown),
            cdi=(qualified(shown.device),) if self._settings.generate else (),
            notes={NOTE: msgspec.json.encode(note).decode()},
            physical=PhysicalID(shown.device),
        )

    def unprepare(self, one: Share) -> None:
        """Undo it, from what is remembered; or, where its preparer was killed, from the device's name."""
        key = _key(one)
        try:
            note = self._notes.get(key) or self._noted(one)
            with self._lock(note.gpu):
                bring_about(self._hands, note.gpu, self._held(note.gpu, key), left=(note.held,))
        except Gone:
            # The GPU went, with all that was on it.
            self._put_back(key, None)
            return
        self._put_back(key, None)
        if note.held.partition is not None:
            self._generate()

    def _noted(self, one: Share) -> Note:
        if NOTE in one.notes:
            return msgspec.json.decode(one.notes[NOTE], type=Note)
        source = self._find(one.device)
        held = share.holding(source, self._settings.sharing, Given(one.uid, one.device, one.share_id))
        if isinstance(held, share.Refusal):
            raise Bug(held.what)
        return Note(source.gpu.uuid, held)

    def _put_back(self, key: Key, before: Note | None) -> None:
        self._notes.pop(key, None)
        if before is not None:
            self._notes[key] = before

    def _find(self, device: str) -> Source:
        for gpu in self._hands.driver.gpus():
            source = self._source(gpu)
            if device == source.name or share.partition_named(source, device) is not None:
                return source
        raise Gone(f"{device}: its GPU is not there any more")

    def _source(self, gpu: Gpu) -> Source:
        ours = [one.instance(gpu) for one in self._held(gpu.uuid)]
        foreign = tuple(one for one in gpu.instances if one not in ours)
        return Source(name_of(gpu), gpu, foreign=foreign)

    def _held(self, uuid: str, but: Key | None = None) -> tuple[Holding, ...]:
        return tuple(note.held for key, note in [*self._notes.items()] if note.gpu == uuid and key != but)

    def _lock(self, uuid: str) -> Lock:
        return self._locks.setdefault(uuid, Lock())

    def _generate(self) -> None:
        if self._settings.generate is not None:
            self._settings.generate()


def _key(one: Share) -> Key:
    return one.uid, one.device, one.share_id


def _edits(shown: share.Exposure) -> Edits:
    # A runtime that hands out GPUs by itself would hand out all of them to whoever says nothing.
    environment = {"NVIDIA_VISIBLE_DEVICES": "void", **dict(shown.environment)}
    mounts = tuple(Mount(one.host, one.container, _MOUNT_OPTIONS) for one in shown.mounts)
    return Edits(env=environment, mounts=mounts)
