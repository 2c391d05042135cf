"""How every adapter is set up to speak to our own manager's face for it, and what must never be seen of that.

Knows settings. Must not know what is said. An adapter of `jackfield.fabric.TYPES` that is not here is not fuzzed, and
`test_adapters.py` says so.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from jackfield import fabric
from jackfield.fabric import FabricSettings, Line
from jackfield.model.names import Seconds
from jackfield.ports import Clock
from unit.fabric_manager.lab import FABRIC, TOKEN

USERNAME: Final = "a-user-of-this-test"
CLIENT: Final = "a-client-of-this-test"
CLIENT_SECRET: Final = "a-client-secret-of-this-test"  # noqa: S105 - there is no such client
CALL_SECONDS: Final = Seconds(1.0)
PLAIN: Final = ("_REALM", "REDFISH_USERNAME")
"""Variables that hold no secret: the realm is part of a path, and the user is called as the manager is."""
_SPANS: Final[Mapping[str, object]] = {"effectSeconds": 3.0, "queueSeconds": 2.0}
_MODELS: Final[Mapping[str, object]] = {"models": [{"name": "A100"}, {"name": "H100"}], "slots": 10}
_FSAS: Final[Mapping[str, object]] = {
    "tenant": "00000000-1111-2222-3333-444444444444",
    "credentialsPrefix": "FSAS_",
    **_MODELS,
    **_SPANS,
}
_REDFISH: Final[Mapping[str, object]] = {
    "credentialsPrefix": "REDFISH_",
    "events": False,
    **_MODELS,
    **_SPANS,
}


class Setup(msgspec.Struct, frozen=True):
    """One adapter's settings but for the address, and the environment it is started in."""

    settings: Mapping[str, object]
    environment: Mapping[str, str]
    type: str = ""
    """The adapter, where one is tried in several ways."""
    knows_orders: bool = False
    """Its manager's word is all there is: the adapter does not look for itself whether it is true."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be in no error and no log line."""
        return tuple(text for name, text in self.environment.items() if not name.endswith(PLAIN))


FSAS_ENVIRONMENT: Final = {
    "FSAS_REALM": "cdi",
    "FSAS_CLIENT_ID": CLIENT,
    "FSAS_CLIENT_SECRET": CLIENT_SECRET,
    "FSAS_USERNAME": USERNAME,
    "FSAS_PASSWORD": TOKEN.reveal(),
}
REDFISH_ENVIRONMENT: Final = {"REDFISH_USERNAME": "jackfield", "REDFISH_PASSWORD": TOKEN.reveal()}
SETUPS: Final[Mapping[str, Setup]] = {
    "native": Setup({"tokenVariable": "NATIVE_TOKEN"}, {"NATIVE_TOKEN": TOKEN.reveal()}, knows_orders=True),
    "fsas-fm": Setup({"options": _FSAS}, FSAS_ENVIRONMENT),
    "fsas-cm": Setup(
        {"options": {**_FSAS, "cluster": "00000000-5555-6666-7777-888888888888"}}, FSAS_ENVIRONMENT
    ),
    "nec": Setup(
        {"tokenVariable": "NEC_TOKEN", "options": {**_MODELS, **_SPANS}}, {"NEC_TOKEN": TOKEN.reveal()}
    ),
    "redfish": Setup({"options": _REDFISH}, REDFISH_ENVIRONMENT),
    "redfish-constrained": Setup(
        {"options": {**_REDFISH, "composition": "constrained", "authentication": "basic"}},
        REDFISH_ENVIRONMENT,
        "redfish",
    ),
    "sunfish": Setup({"options": _REDFISH}, REDFISH_ENVIRONMENT),
    "liqid": Setup(
        {"tokenVariable": "LIQID_TOKEN", "options": {**_MODELS, **_SPANS, "user": "jackfield"}},
        {"LIQID_TOKEN": TOKEN.reveal()},
    ),
}
"""Every adapter, and some in more than one way."""


def line(kind: str, url: str, clock: Clock, seconds: Seconds = CALL_SECONDS) -> Line:
    """Return the adapter as a newly started process would make it."""
    setup = SETUPS[kind]
    given = {
        "name": FABRIC,
        "type": setup.type or kind,
        "url": url,
        "callTimeoutSeconds": seconds,
        **setup.settings,
    }
    return fabric.load(msgspec.convert(given, FabricSettings), setup.environment, clock)
