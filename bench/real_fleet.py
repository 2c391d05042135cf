"""What 5,000 nodes cost on a real control plane, beside 100: start, memory, a burst of 1,000 claims, and each change.

Needs Go, or the programs in the cache, and about twenty minutes. Nodes, plugins and hardware are simulated. The claims
of the burst are allocated by hand, in kube-scheduler's words: with so many devices it takes a second for each, which
is measured apart, by pods that it is left alone with for a while. `pods` leaves all 1,000 to it until each of them
runs, with a setting that a large cluster needs: to look at a hundred nodes for each, not at five hundred. Prints one
JSON object a figure and writes all of them to bench/results/real_fleet.json. `make bench-fleet` runs it; names of
figures as arguments run only those.
"""

import asyncio
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec
from real_cluster import FAST_CONTROLLERS, SLOTS, allocate, memory_mib, processor_seconds, settled, stage

from jackfield.codec import Raw
from jackfield.model.fabric import Traits
from jackfield.model.names import Seconds
from jackfield.sim.fabric import Verb
from jackfield.sim.setting import Setting
from jackfield.testing.control_plane import ControlPlane, Program, Settings
from real.site import Replica, Site

Figures = dict[str, object]

RESULTS: Final = Path(__file__).parent / "results" / "real_fleet.json"
NODES: Final = {"hundred": 100, "fleet": 5000}
POOL: Final = 4000
BURST: Final = 1000
ROOM: Final = 32
"""Devices that a node can have attached: a hundred nodes have to have room for the whole burst."""
HEARTBEAT_SECONDS: Final = 60.0
"""How often a plugin says that it lives: every 10 s, 5,000 of them keep two cores busy with nothing else."""
QUIET_SECONDS: Final = 60.0
SCHEDULED_SECONDS: Final = 90.0
PODS: Final = "pods"
FEW_NODES: Final[Raw] = {"percentageOfNodesToScore": 2}
"""Of 5,000 the least that kube-scheduler ever looks at."""
PODS_SECONDS_MAX: Final = 3600.0
PROGRESS_SECONDS: Final = 30.0
MEMORY_MAX_MIB: Final = 300e6 / 2**20
GROWTH_MAX: Final = 1.2


def fleet_stage(nodes: int) -> Setting:
    """Return so many nodes with eight devices each, and a manager that carries out the whole burst at once."""
    made = stage(nodes, POOL, local=SLOTS)
    fabrics = tuple(msgspec.structs.replace(one, traits=Traits(jobs=BURST)) for one in made.fabrics)
    groups = tuple(msgspec.structs.replace(one, slots=ROOM) for one in made.nodes)
    policy = msgspec.structs.replace(made.policy, heartbeat_seconds=Seconds(4 * HEARTBEAT_SECONDS))
    return msgspec.structs.replace(
        made, fabrics=fabrics, nodes=groups, policy=policy, heartbeat=Seconds(HEARTBEAT_SECONDS)
    )


def say(words: str) -> None:
    """Tell how far it is."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


async def measured(plane: ControlPlane, folder: Path, nodes: int) -> Figures:
    """Measure one size of cluster."""
    say(f"{nodes} nodes: coming up")
    async with Site(plane, fleet_stage(nodes), folder, replicas=0) as site:
        replica = site.replica()
        start = await _started(site, replica, plane, nodes)
        say(f"{nodes} nodes: {start}")
        idle = await _idle(site, replica)
        say(f"{nodes} nodes: at rest {idle * 1000:.0f} ms of a processor each second")
        scheduled = await _scheduled(site)
        say(f"{nodes} nodes: kube-scheduler allocated {scheduled} pods in {SCHEDULED_SECONDS:.0f} s")
        burst = await _burst(site, replica, plane, idle)
        memory = memory_mib(replica.pid)
        await replica.kill()
    return {
        "nodes": nodes,
        "local devices": nodes * SLOTS,
        "pool devices": POOL,
        **start,
        "processor at rest, ms a second": round(idle * 1000, 1),
        "pods that kube-scheduler allocated a second": round(scheduled / SCHEDULED_SECONDS, 2),
        **burst,
        "memory after the burst, MiB": round(memory, 1),
        "memory bound, MiB": round(MEMORY_MAX_MIB, 1),
        "met": memory <= MEMORY_MAX_MIB,
    }


async def _started(site: Site, replica: Replica, plane: ControlPlane, nodes: int) -> Figures:
    began = site.clock.now()
    await replica.start()
    await site.until(lambda: any(one.what.startswith("PutSlice") for one in replica.lines), 600)
    offered = site.clock.now() - began
    await site.until(
        lambda: len({one.object for one in replica.lines if one.what.startswith("LabelNode")}) == nodes, 600
    )
    labelled = site.clock.now() - began
    await settled(site, plane)
    return {
        "start to first offer, s": round(offered, 1),
        "start to every node labelled, s": round(labelled, 1),
        "memory after the start, MiB": round(memory_mib(replica.pid), 1),
    }


async def _idle(site: Site, replica: Replica) -> float:
    """Return the share of a processor that is used when nothing happens but that every plugin says that it lives."""
    used = processor_seconds(replica.pid)
    await site.clock.sleep(Seconds(QUIET_SECONDS))
    return (processor_seconds(replica.pid) - used) / QUIET_SECONDS


async def _scheduled(site: Site) -> int:
    """Return how many pods kube-scheduler gets to in a while: all it may do here is to allocate."""
    await site.template()
    ordered = len(_ordered(site))
    for number in range(BURST):
        await site.pod(f"s{number}", template="gpu")
    await site.clock.sleep(Seconds(SCHEDULED_SECONDS))
    return len(_ordered(site)) - ordered


async def _burst(site: Site, replica: Replica, plane: ControlPlane, idle: float) -> Figures:
    plane.kill(Program.SCHEDULER)
    await settled(site, plane)
    ordered = len(_ordered(site))
    for number in range(BURST):
        await site.claim(f"c{number}")
        await site.pod(f"p{number}", claim=f"c{number}")  # a claim that nobody waits for would be cleared
    calls, used, began = len(plane.audited()), processor_seconds(replica.pid), site.clock.now()
    # From the other end than the scheduler, which begins with the first device and the first node with room.
    nodes = sorted(site.hardware.hosts, reverse=True)
    pairs = [(number, nodes[number % len(nodes)], POOL - 1 - number) for number in range(BURST)]
    for some in range(0, BURST, 50):
        await asyncio.gather(*(allocate(site, *pair) for pair in pairs[some : some + 50]))
    await site.until(lambda: len(_ordered(site)) - ordered >= BURST, 900)
    ordering = site.clock.now() - began
    await settled(site, plane)
    span = site.clock.now() - began
    net = processor_seconds(replica.pid) - used - idle * span
    asked = Counter(one.verb for one in plane.audited()[calls:] if "(jackfield)" in one.user_agent)
    return {
        "claims at once": BURST,
        "orders per second": round(BURST / ordering, 1),
        "processor for a change, ms": round(net / BURST * 1000, 2),
        "API calls for a change": {verb: round(count / BURST, 2) for verb, count in sorted(asked.items())},
    }


async def pods(plane: ControlPlane, folder: Path, nodes: int) -> Figures:
    """Have kube-scheduler place 1,000 pods, all there at once, until every one runs with its device."""
    async with Site(plane, fleet_stage(nodes), folder, replicas=0) as site:
        replica = site.replica()
        say(f"{PODS}: {await _started(site, replica, plane, nodes)}")
        idle = await _idle(site, replica)
        say(
            f"{PODS}: our controllers are process {replica.pid}, kube-scheduler {plane.pid(Program.SCHEDULER)}"
        )
        await site.template()
        who = {"our controllers": replica.pid, "kube-scheduler": plane.pid(Program.SCHEDULER)}
        who |= {"kube-apiserver": plane.pid(Program.APISERVER), "etcd": plane.pid(Program.ETCD)}
        began, used = site.clock.now(), {name: processor_seconds(pid) for name, pid in who.items()}
        for number in range(BURST):
            await site.pod(f"s{number}", template="gpu")
        while (running := await _running(site)) < BURST:
            took = site.clock.now() - began
            say(f"{PODS}: {len(_ordered(site))} orders, {running} pods run after {took:.0f} s")
            assert took < PODS_SECONDS_MAX, site.report()
            await site.clock.sleep(Seconds(PROGRESS_SECONDS))
        span = site.clock.now() - began
        spent = {name: processor_seconds(pid) - used[name] for name, pid in who.items()}
        spent["our controllers"] -= idle * span
        memory = memory_mib(replica.pid)
        await replica.kill()
    return {
        "nodes": nodes,
        "pods": BURST,
        "orders": len(_ordered(site)),
        "until all run, s": round(span, 0),
        "processor for a pod, ms": {name: round(one / BURST * 1000, 1) for name, one in spent.items()},
        "memory after the burst, MiB": round(memory, 1),
        "memory bound, MiB": round(MEMORY_MAX_MIB, 1),
        "met": memory <= MEMORY_MAX_MIB,
    }


async def _running(site: Site) -> int:
    return sum(one.status.phase == "Running" for one in (await site.pods()).values())


def _ordered(site: Site) -> set[str]:
    return {str(one.order) for one in site.calls if one.verb is Verb.ATTACH}


def main(names: list[str]) -> int:
    """Measure; return 1 if a bound is not met."""
    known_names = (*NODES, PODS)
    unknown = [one for one in names if one not in known_names]
    if unknown:
        sys.stderr.write(f"no figure is called {', '.join(unknown)}; there are {', '.join(known_names)}\n")
        return 2
    found: dict[str, Figures] = {}
    settings = Settings(audit=True, controller_manager_flags=FAST_CONTROLLERS)
    for name in names or known_names:
        by_pods = name == PODS
        chosen = msgspec.structs.replace(settings, scheduler=FEW_NODES) if by_pods else settings
        with (
            ControlPlane(chosen, say=lambda words: say(f"control plane: {words}")) as plane,
            tempfile.TemporaryDirectory() as folder,
        ):
            measure = pods if by_pods else measured
            found[name] = asyncio.run(measure(plane, Path(folder), NODES.get(name, NODES["fleet"])))
        sys.stdout.write(json.dumps({name: found[name]}) + "\n")
        sys.stdout.flush()
    if NODES.keys() <= found.keys():
        costs = [float(str(found[name]["processor for a change, ms"])) for name in NODES]
        growth = costs[1] / costs[0]
        found["growth"] = {"ratio": round(growth, 3), "bound": GROWTH_MAX, "met": growth <= GROWTH_MAX}
        sys.stdout.write(json.dumps({"growth": found["growth"]}) + "\n")
    RESULTS.parent.mkdir(exist_ok=True)
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**known, **found}, indent=2) + "\n")
    missed = [name for name, figures in found.items() if figures.get("met") is False]
    if missed:
        sys.stderr.write(f"not met: {', '.join(missed)}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
