"""The files that give claims their devices: a CDI spec per claim, and what containers can read, per request.

Knows which files follow from a record, and puts right what is not so. Must not know what is true: the checkpoint does.

None of them has to survive a power cut, since whoever opens the store writes them again; but what gave a device away
must not come back by one.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from jackfield.driver import metadata
from jackfield.driver.cdi import Edits, Mount, spec
from jackfield.driver.checkpoint import Record
from jackfield.driver.entry import UID, Entry, base
from jackfield.driver.files import Folder
from jackfield.model.names import Uid

FILE_MODE: Final = 0o644

_METADATA = re.compile(rf"({UID.pattern})_[a-z0-9-]+\.json")


class Given:
    """The CDI files of one driver, and the metadata files that they mount. Any call may raise Retry."""

    def __init__(self, driver: str, cdi: Folder, metadata_folder: Folder, *, with_metadata: bool) -> None:
        self._driver = driver
        self._cdi = cdi
        self._metadata = metadata_folder
        self._with_metadata = with_metadata

    def ids(self, entry: Entry) -> tuple[tuple[str, ...], ...]:
        """Return the names by which a runtime knows each device held; ours comes last, and so has the last word."""
        return tuple(
            (*held.cdi, f"{self._driver}/claim={name}")
            for held, name in zip(entry.held, _device_names(entry), strict=True)
        )

    def give(self, records: Collection[Record]) -> int:
        """Write what is missing of the claims' files, and return how many that were."""
        read = {name: data for one in records for name, data in self.metadata_files(one).items()}
        entries = [one.entry for one in records]
        given = {self._cdi_name(one.uid): self._spec(one) for one in entries if one.held}
        nothing = [self._cdi_name(one.uid) for one in entries if not one.held]
        count = self._metadata.put(read, FILE_MODE)  # what a CDI file mounts must be there before it
        count += self._cdi.put(given, FILE_MODE)
        if nothing:
            self._cdi.remove(*nothing, durable=True)
        return count

    def take(self, uids: Sequence[Uid]) -> None:
        """Remove all files of these claims."""
        self._cdi.remove(*map(self._cdi_name, uids), durable=True)
        read = (name for name in self._metadata.names() if name.partition("_")[0] in uids)
        self._metadata.remove(*read, durable=False)

    def take_needless(self, records: Iterable[Record], concerned: Callable[[str], bool]) -> None:
        """Remove what can be read of requests that are served no more, of the claims concerned."""
        needed = {name for record in records for name in self._metadata_names(record.entry)}
        found = ((name, _METADATA.fullmatch(name)) for name in self._metadata.names())
        needless = (name for name, ours in found if ours and concerned(ours[1]) and name not in needed)
        self._metadata.remove(*needless, durable=False)

    def take_leftovers(self) -> None:
        """Remove what somebody who was killed did not finish."""
        for folder, ours in ((self._metadata, "."), (self._cdi, f".{self._driver}_claim_")):
            folder.remove(*(name for name in folder.leftovers() if name.startswith(ours)), durable=False)

    def uids(self) -> Iterator[Uid]:
        """Return the claims of which there is a CDI file of ours."""
        before, after = self._cdi_name(Uid("|")).split("|")
        for name in self._cdi.names():
            uid = name.removeprefix(before).removesuffix(after)
            if name == f"{before}{uid}{after}" and UID.fullmatch(uid):
                yield Uid(uid)

    def metadata_files(self, record: Record) -> Mapping[str, bytes]:
        """Return what can be read of each request, by the file's name."""
        if not self._with_metadata:
            return {}
        files = metadata.files(self._driver, record.entry, record.generation)
        return {_metadata_name(record.entry.uid, request): data for request, data in files.items()}

    def _metadata_names(self, entry: Entry) -> Iterator[str]:
        requests = (base(one) for held in entry.held for one in held.requests)
        return (_metadata_name(entry.uid, one) for one in requests if self._with_metadata)

    def _spec(self, entry: Entry) -> bytes:
        return spec(f"{self._driver}/claim", self._edits(entry))

    def _edits(self, entry: Entry) -> Mapping[str, Edits]:
        """Return what each device brings; the first of each request also brings what can be read of the request."""
        mounted: list[str] = []
        devices: dict[str, Edits] = {}
        for held, name in zip(entry.held, _device_names(entry), strict=True):
            requests = dict.fromkeys(map(base, held.requests)) if self._with_metadata else ()
            new = [one for one in requests if one not in mounted]
            mounted += new
            devices[name] = held.edits | Edits(mounts=tuple(self._mount(entry, one) for one in new))
        return devices

    def _mount(self, entry: Entry, request: str) -> Mount:
        host = self._metadata.path / _metadata_name(entry.uid, request)
        return Mount(str(host), metadata.container_path(self._driver, entry, request))

    def _cdi_name(self, uid: Uid) -> str:
        return (
            f"{self._driver}_claim_{uid}.json"  # no driver's name has an underscore: each sees only its own
        )


def _device_names(entry: Entry) -> tuple[str, ...]:
    """Return what each device is called in the CDI file: never the same in two claims, nor twice in one."""
    return tuple(f"{entry.uid}-{held.device}-{number}" for number, held in enumerate(entry.held))


def _metadata_name(uid: Uid, request: str) -> str:
    return f"{uid}_{request}.json"
