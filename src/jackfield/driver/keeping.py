"""What a driver lists, and what is prepared of it → what is published: nothing leaves a slice while a claim has it.

A device that goes while it is in use must not be forgotten: the scheduler counts what it consumes by its entry, and an
eviction by taint needs something that is tainted. So its last entry stays, tainted, until it is unprepared. Knows
slices. Must not know why a device went, nor who writes.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from jackfield.core.offer import Pool
from jackfield.model.device import CounterSet, Device, DeviceTaint
from jackfield.model.slice import ResourceSlice

Place = tuple[str, str]
"""Pool and device."""


class Kept(msgspec.Struct, frozen=True):
    """What is to be published, and which of it only since somebody has it."""

    pools: tuple[Pool, ...]
    missing: tuple[Place, ...] = ()


def kept(
    pools: tuple[Pool, ...], slices: Iterable[ResourceSlice], held: Iterable[Place], taint: DeviceTaint
) -> Kept:
    """Return pools with what is held and not listed any more, as the slices last showed it, tainted."""
    listed = {(pool.name, one.name) for pool in pools for one in pool.devices}
    unlisted = [place for place in dict.fromkeys(held) if place not in listed]
    if not unlisted:
        return Kept(pools)
    there = tuple(slices)
    shown = {(one.spec.pool.name, device.name): device for one in there for device in one.spec.devices}
    missing = tuple(place for place in unlisted if place in shown)
    names = dict.fromkeys((*(pool.name for pool in pools), *(pool for pool, _ in missing)))
    known = {pool.name: pool for pool in pools}
    return Kept(
        tuple(
            _with(
                known.get(name, Pool(name=name)),
                [_tainted(shown[place], taint) for place in missing if place[0] == name],
                [one for each in there if each.spec.pool.name == name for one in each.spec.shared_counters],
            )
            for name in names
        ),
        missing,
    )


def _with(pool: Pool, devices: list[Device], counters: list[CounterSet]) -> Pool:
    """Return the pool with these devices too, and with what they consume from."""
    wanted = list(_counter_sets(devices))
    has = [one.name for one in pool.counters]
    more = {one.name: one for one in counters if one.name in wanted and one.name not in has}
    return replace(pool, devices=(*pool.devices, *devices), counters=(*pool.counters, *more.values()))


def _counter_sets(devices: Iterable[Device]) -> Iterator[str]:
    return (one.counter_set for device in devices for one in device.consumes_counters)


def _tainted(device: Device, taint: DeviceTaint) -> Device:
    others = tuple(one for one in device.taints if one.key != taint.key)
    return replace(device, taints=(*others, taint))
