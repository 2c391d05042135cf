"""Makes happen what goes wrong: processes killed and stopped, lines cut.

Knows how each fault begins and ends. Must not know when, nor what comes of it. Whatever happens to us, what was
stopped goes on and what was killed is started again.
"""

import asyncio
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from jackfield.model.names import Seconds
from jackfield.testing.control_plane import Program
from real.faults.draw import API, Fault, What
from real.faults.proxy import Way
from real.faults.site import Site


class Strikes:
    """What goes wrong at a site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.dead: set[str] = set()
        """Processes that we have killed and not started again."""
        self.seen: Counter[str] = Counter()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def strike(self, fault: Fault) -> None:
        """Let it be wrong for as long as it lasts. What was killed may take its time to come back: it is waited for."""
        async with self._turns[fault.target]:
            self.seen[fault.what] += 1
            async with self._lasting(fault):
                await self._site.clock.sleep(Seconds(fault.seconds))

    @asynccontextmanager
    async def _lasting(self, fault: Fault) -> AsyncIterator[None]:
        await self._begin(fault)
        try:
            yield
        finally:
            await self._end(fault)
            self.dead.discard(fault.target)

    async def _begin(self, fault: Fault) -> None:
        match fault.what:
            case What.KILL:
                self.dead.add(fault.target)
                await self._kill(fault.target)
            case What.STOP:
                self._signal(fault.target, signal.SIGSTOP)
            case _:
                await self._site.lines[fault.target].turn(fault.what)

    async def _end(self, fault: Fault) -> None:
        match fault.what:
            case What.KILL:
                await self._start(fault.target)
            case What.STOP:
                self._signal(fault.target, signal.SIGCONT)
            case _:
                await self._site.lines[fault.target].turn(Way.OPEN)

    async def _kill(self, target: str) -> None:
        site = self._site
        if target == API:
            await site.plane.aside(partial(site.plane.kill, Program.APISERVER))
        elif target in site.replicas:
            await site.replicas[target].kill()
        else:
            site.managers[target].process.kill()

    async def _start(self, target: str) -> None:
        site = self._site
        if target == API:
            await site.plane.aside(partial(site.plane.start, Program.APISERVER))
        elif target in site.replicas:
            await site.replicas[target].start()
        else:
            await site.managers[target].start()

    def _signal(self, target: str, number: signal.Signals) -> None:
        site = self._site
        if target in site.replicas:
            site.replicas[target].signal(number)
            return
        stops = number is signal.SIGSTOP
        if target == API:
            (site.plane.pause if stops else site.plane.resume)(Program.APISERVER)
        else:
            process = site.managers[target].process
            (process.pause if stops else process.resume)()
