"""Lines of HTTP clients and servers: one that is given up ends at once, one that does not come about says why.

Knows connections. Must not know what is asked on them, or of whom.
"""

import asyncio
import os
import ssl
from contextlib import suppress

import aiohttp


class HangsUp(aiohttp.ClientResponse):
    """An answer that, when it is given up, takes its connection with it.

    An end in good form waits for the server, which may be the one that does not answer; and whoever hangs up may be
    gone by then, and leave a connection behind that nobody closes.
    """

    def close(self) -> None:
        """Hang up, whether the server hears it or not."""
        if self.connection is not None:
            hang_up(self.connection.transport)
        super().close()


def hang_up(transport: asyncio.WriteTransport | None) -> None:
    """End a connection at once, whether the other side hears it or not.

    Python 3.11.2, which is Debian 12's, forgets the TLS of a connection that is closed a second time, and then cannot
    end it at once. Such a one is on its way to its end, and whoever wants that has nothing more to do.
    """
    if transport is not None:
        with suppress(AttributeError):
            transport.abort()


def unreached(error: aiohttp.ClientConnectorError) -> str:
    """Return why no connection came about. The library's own words name objects of Python's, and half of it twice."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return f"the certificate of {error.host}:{error.port} is not accepted: {_told(error.certificate_error)}"
        case aiohttp.ClientConnectorSSLError():
            return f"no TLS came about with {error.host}:{error.port}: {_told(error.os_error)}"
        case aiohttp.ClientConnectorDNSError():
            return f"Cannot connect to {error.host}: the name is not known: {_told(error.os_error)}"
        case _:
            return f"Cannot connect to {error.host}:{error.port}: {_told(error.os_error)}"


def _told(error: Exception) -> str:
    """Return what the system says of it; of a call that failed asyncio tells the arguments instead of the reason."""
    match error:
        case ssl.SSLCertVerificationError():
            return error.verify_message
        case ssl.SSLError() if error.reason:
            return error.reason.replace("_", " ").lower()
        case OSError(errno=int(number)) if number > 0:
            return os.strerror(number)
        case OSError(strerror=str(words)) if words:
            return words
        case _:
            return str(error) or type(error).__name__
