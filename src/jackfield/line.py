"""The line of every HTTP client here: one that is given up ends at once.

Knows connections. Must not know what is asked on them, or of whom.
"""

import aiohttp


class HangsUp(aiohttp.ClientResponse):
    """An answer that, when it is given up, takes its connection with it.

    An end in good form waits for the server, which may be the one that does not answer; and whoever hangs up may be
    gone by then, and leave a connection behind that nobody closes.
    """

    def close(self) -> None:
        """Hang up, whether the server hears it or not."""
        line = self.connection
        if line is not None and line.transport is not None:
            line.transport.abort()
        super().close()
