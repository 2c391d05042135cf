"""What a manager counts: devices where they are, orders as they end, requests as they are answered."""

import asyncio
from pathlib import Path

import aiohttp

from jackfield.fabric_manager.faults import Fault, Kind
from jackfield.fabric_manager.figures import FAMILIES, Figures
from jackfield.fabric_manager.manager import Manager
from jackfield.model.names import PhysicalID
from unit.fabric_manager.lab import TOKEN, attached, detached, lab, line, on, order, serving


def value(figures: Figures, name: str, *labels: str) -> float | None:
    family = next(one for one in FAMILIES if name in {one.name, f"{one.name}_count"})
    return figures.registry.get_sample_value(name, dict(zip(family.labels, labels, strict=True)))


def devices(figures: Figures) -> dict[tuple[str, str], float | None]:
    states = [(model, state) for model in ("A100", "H100") for state in ("free", "attached", "unhealthy")]
    found = {one: value(figures, "jackfield_manager_devices", "rack-a", *one) for one in states}
    return {one: count for one, count in found.items() if count}


def test_devices_are_counted_where_they_are(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        figures = Figures(manager)
        assert devices(figures) == {("A100", "free"): 10.0, ("H100", "free"): 1.0}
        await attached(manager, order("o"))
        await manager.set_fault(Fault(Kind.ILL, device=PhysicalID("h-1"), id="ill"))
        assert devices(figures) == {
            ("A100", "free"): 9.0,
            ("A100", "attached"): 1.0,
            ("H100", "unhealthy"): 1.0,
        }
        assert value(figures, "jackfield_manager_faults", "rack-a") == 1.0
        await detached(manager, order("o"))
        await manager.clear_fault("ill")
        assert devices(figures) == {("A100", "free"): 10.0, ("H100", "free"): 1.0}

    on(tmp_path, lab(), play)


def test_orders_are_counted_under_way_and_at_their_end(tmp_path: Path) -> None:
    async def play(manager: Manager) -> None:
        figures = Figures(manager)
        await manager.set_fault(Fault(Kind.HANG, id="hang"))
        await manager.attach(order("o"), "native")
        assert value(figures, "jackfield_manager_orders", "rack-a", "attach") == 1.0
        await manager.clear_fault("hang")
        await attached(manager, order("o"))
        assert value(figures, "jackfield_manager_orders", "rack-a", "attach") == 0.0
        await manager.set_fault(Fault(Kind.FAIL, id="fail"))
        await attached(manager, order("p", "a-2"))
        await manager.clear_fault("fail")
        await detached(manager, order("o"))
        ended = "jackfield_manager_orders_ended_total"
        assert value(figures, ended, "rack-a", "attach", "done") == 1.0
        assert value(figures, ended, "rack-a", "attach", "failed") == 1.0
        assert value(figures, ended, "rack-a", "detach", "done") == 1.0
        assert value(figures, "jackfield_manager_order_seconds_count", "rack-a", "attach") == 2.0
        assert figures.trouble() == ""

    on(tmp_path, lab(), play)


def test_requests_are_counted_by_face_method_and_code(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, lab()) as server:
            figures = Figures(server.manager)
            server.heard = figures.answered
            async with line(server) as fabric, aiohttp.ClientSession() as session:
                await fabric.inventory()
                for method, path in (("GET", "/nowhere"), ("OPTIONS", "/nowhere")):
                    token = {"Authorization": f"Bearer {TOKEN.reveal()}"}
                    async with session.request(method, server.url + path, headers=token) as answer:
                        await answer.read()
        requests = "jackfield_manager_requests_total"
        assert value(figures, requests, "native", "GET", "200") == 1.0
        assert value(figures, requests, "none", "GET", "404") == 1.0
        assert value(figures, requests, "none", "other", "404") == 1.0
        assert value(figures, "jackfield_manager_request_seconds_count", "native") == 1.0

    asyncio.run(main())
