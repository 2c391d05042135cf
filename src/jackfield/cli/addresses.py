"""Where a process listens, as it is typed: HOST:PORT.

Knows how an address is spelt. Must not know what is answered there; help must come up at once, so it imports little.
"""

import re
from typing import Final, NamedTuple

import click

PORT_MAX: Final = 65535
_PLACE: Final = re.compile(r"(?:\[(?P<six>[^\[\]\s]+)\]|(?P<host>[^:\[\]\s]+)):(?P<port>[0-9]{1,5})")


class Place(NamedTuple):
    """An address of this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        """Spell it as it is typed."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class HostAndPort(click.ParamType[Place]):
    """An address, as options take it."""

    name = "HOST:PORT"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        """Return what was typed as an address."""
        found = _PLACE.fullmatch(value)
        if found is None or int(found["port"]) > PORT_MAX:
            self.fail(
                f"{value!r} is not HOST:PORT, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::]:8080", param, ctx
            )
        return Place(found["six"] or found["host"], int(found["port"]))


LISTEN: Final = click.option(
    "--listen",
    type=HostAndPort(),
    metavar="HOST:PORT",
    help="Answer /metrics, /healthz and /readyz here, to anybody; without it nobody is answered.",
)
