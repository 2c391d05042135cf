"""The CPU driver of the examples: which CPUs a share gets, and a whole job on the embedded cluster."""

import asyncio
from pathlib import Path

import click
import pytest

from jackfield import driver
from jackfield.model.names import Key, Uid
from jackfield.node.cpus import Cpu, listed
from jackfield.testing.sysfs import Machine
from unit.driver import examples
from unit.driver.examples import Example
from unit.driver.site import NODE, Site, on_a_node

CPU = "cpu.example.com"
CPUS = "dra.cpu/cpu"
EXAMPLE = Example("cpu-driver")


def machine(folder: Path, cpus: int = 16) -> Path:
    """Return the sysfs of a machine with two NUMA nodes that have so many CPUs each, two to a core.

    As is usual, all first threads are numbered before all second ones: with 16, CPUs 0 and 16 are one core.
    """
    made = Machine(folder / "host")
    half = cpus // 2
    left, right = f"0-{half - 1},{cpus}-{cpus + half - 1}", f"{half}-{cpus - 1},{cpus + half}-{2 * cpus - 1}"
    made.cpus({0: left, 1: right}, f"0-{2 * cpus - 1}")
    for number in range(2 * cpus):
        made.cpu(number, core=number % half, socket=number % cpus // half)
    return made.sysfs


def cpus(sysfs: Path, *reserved: int) -> driver.Driver:
    made = EXAMPLE.module.Cpus(sysfs, reserved)
    assert isinstance(made, driver.Driver)
    return made


def test_one_claim_gets_ten_cpus_on_each_of_two_numa_nodes() -> None:
    async def scene(site: Site) -> None:
        site.apply(EXAMPLE.yaml("class"), EXAMPLE.yaml("two-numa-nodes"))
        async with site.kubelet() as kubelet, site.kit(cpus(machine(site.folder))):
            claim, got = await examples.prepared(site, kubelet, CPU, "two-halves")
            given = [
                (one.request, one.device, one.consumed_capacity) for one in site.claim("two-halves").results
            ]
            assert given == [("left", "numa-0", {CPUS: "10"}), ("right", "numa-1", {CPUS: "10"})]
            assert got.environment == {
                "CPUSET_LEFT": "0-4,16-20",
                "CPUSET_LEFT_NUMA_NODE": "0",
                "CPUSET_RIGHT": "8-12,24-28",
                "CPUSET_RIGHT_NUMA_NODE": "1",
            }
            await examples.unprepared(site, kubelet, CPU, claim)

    on_a_node(scene)


def test_after_a_restart_nobody_gets_a_cpu_that_somebody_has() -> None:
    async def scene(site: Site) -> None:
        site.apply(EXAMPLE.yaml("class"), EXAMPLE.yaml("two-numa-nodes"))
        sysfs = machine(site.folder)
        async with site.kubelet() as kubelet, site.kit(cpus(sysfs)):
            await examples.prepared(site, kubelet, CPU, "two-halves")
        site.apply(EXAMPLE.yaml("one-numa-node"))
        async with site.kubelet() as kubelet, site.kit(cpus(sysfs)):
            _, got = await examples.prepared(site, kubelet, CPU, "near-the-disks")
            assert got.environment["CPUSET_CPUS"] == "13-15,29-30"
            _, again = await examples.prepared(site, kubelet, CPU, "two-halves")
            assert again.environment["CPUSET_RIGHT"] == "8-12,24-28"

    on_a_node(scene)


def test_whoever_wants_twelve_where_eleven_are_free_waits_and_is_told_why() -> None:
    async def scene(site: Site) -> None:
        site.apply(EXAMPLE.yaml("class"), EXAMPLE.yaml("one-numa-node"))
        async with site.kit(cpus(machine(site.folder))):
            await site.allocated("near-the-disks")
            site.apply(EXAMPLE.yaml("two-numa-nodes").replace('cpu: "10"', 'cpu: "12"'))
            assert f"{CPUS}: 12 asked for, 11 left of 16 found" in await examples.waiting(site, "two-halves")

    on_a_node(scene)


# --- without a cluster


def share(uid: str, amount: str, share_id: str = "", *, admin_access: bool = False) -> driver.Share:
    return driver.Share(
        claim=Key("default", uid),
        uid=Uid(uid),
        requests=("work/large",),
        pool=NODE,
        device="numa-0",
        share_id=share_id or uid,
        consumed_capacity={CPUS: amount} if amount else {},
        admin_access=admin_access,
    )


def prepare(one: driver.Driver, *shares: driver.Share) -> list[dict[str, str]]:
    """Return the CPUs that each share is told of."""

    async def scene() -> list[driver.Edits | driver.Prepared]:
        return [await one.prepare(each) for each in shares]

    prepared = [each for each in asyncio.run(scene()) if isinstance(each, driver.Prepared)]
    return [
        {name: text for name, text in each.edits.env.items() if not name.endswith("_NUMA_NODE")}
        for each in prepared
    ]


def test_whole_cores_come_first_and_single_threads_are_taken_from_broken_ones(tmp_path: Path) -> None:
    given = prepare(cpus(machine(tmp_path, 8)), share("a", "3"), share("b", "2"), share("c", "3"))
    assert given == [{"CPUSET_WORK": "0-1,8"}, {"CPUSET_WORK": "2,10"}, {"CPUSET_WORK": "3,9,11"}]


def test_every_share_of_one_request_has_a_variable_of_its_own(tmp_path: Path) -> None:
    one = cpus(machine(tmp_path))
    first, second = share("a", "2", share_id="x"), share("a", "2", share_id="y")
    given = prepare(one, first, second, first)
    assert given == [{"CPUSET_WORK": "0,16"}, {"CPUSET_WORK_2": "1,17"}, {"CPUSET_WORK": "0,16"}]


def test_cpus_that_come_back_are_given_again(tmp_path: Path) -> None:
    one = cpus(machine(tmp_path, 4))
    prepare(one, share("a", "3"))
    with pytest.raises(driver.Retry, match="2 CPUs of NUMA node 0, and only 1 are free"):
        prepare(one, share("b", "2"))
    asyncio.run(one.unprepare(share("a", "3")))
    asyncio.run(one.unprepare(share("a", "3")))
    assert prepare(one, share("b", "2")) == [{"CPUSET_WORK": "0,4"}]


def test_who_only_looks_takes_nothing_and_who_has_no_share_takes_all(tmp_path: Path) -> None:
    one = cpus(machine(tmp_path, 4))
    assert prepare(one, share("a", "", admin_access=True), share("b", "")) == [{}, {"CPUSET_WORK": "0-1,4-5"}]
    asyncio.run(one.restore((share("a", "", admin_access=True),)))
    assert prepare(one, share("c", "")) == [{"CPUSET_WORK": "0-1,4-5"}]


def capacities(one: driver.Driver) -> dict[str, str]:
    return {device.name: device.capacity[CPUS].value for device in one.devices()}


def test_what_is_reserved_or_offline_is_not_offered(tmp_path: Path) -> None:
    sysfs = machine(tmp_path, 4)
    assert capacities(cpus(sysfs, 0, 4)) == {"numa-0": "2", "numa-1": "4"}
    assert capacities(cpus(sysfs, 0, 1, 4, 5)) == {"numa-1": "4"}
    (sysfs / "devices/system/cpu/online").write_text("0-2\n")
    assert capacities(cpus(sysfs)) == {"numa-0": "2", "numa-1": "1"}


def test_a_machine_without_numa_nodes_is_one(tmp_path: Path) -> None:
    made = Machine(tmp_path / "host")
    made.cpus({}, "0-2")
    one = cpus(made.sysfs)
    assert capacities(one) == {"numa-0": "3"}
    assert prepare(one, share("a", "2")) == [{"CPUSET_WORK": "0-1"}]


@pytest.mark.parametrize(
    ("numbers", "spelt"), [((), ""), ((3,), "3"), ((2, 0, 1), "0-2"), ((0, 1, 3, 8, 9), "0-1,3,8-9")]
)
def test_cpus_are_written_as_the_kernel_writes_them(numbers: tuple[int, ...], spelt: str) -> None:
    assert EXAMPLE.module.spelt(numbers) == spelt


@pytest.mark.parametrize(
    ("free", "wanted", "taken"),
    [
        ("0,1,3", 2, "1,3"),  # core 0 is broken, core 1 is whole
        ("0,2,3", 1, "3"),  # core 1 is broken already
        ("0-3", 3, "0-2"),
        ("0-3", 4, "0-3"),
        ("0-3", 0, ""),
    ],
)
def test_a_core_is_broken_only_where_it_must_be(free: str, wanted: int, taken: str) -> None:
    there = [Cpu(number, core=number % 2, socket=0) for number in range(4)]
    picked = EXAMPLE.module.picked(there, [there[one] for one in listed(free)], wanted)
    assert EXAMPLE.module.spelt(one.number for one in picked) == taken


def test_where_the_kernel_tells_of_no_cores_the_lowest_numbers_are_taken() -> None:
    there = [Cpu(number, numa_node=0) for number in range(4)]
    assert EXAMPLE.module.picked(there, there[1:], 2) == there[1:3]


def test_the_command_line_says_where_to_look_and_what_to_leave(tmp_path: Path) -> None:
    one = cpus(Path("/nowhere"))
    command = EXAMPLE.module.command(one)
    context = command.make_context(
        "driver.py", [f"--sysfs-root={machine(tmp_path)}", "--reserved-cpus=0-1,16", "--node-name=n1"]
    )
    assert capacities(one) == {"numa-0": "13", "numa-1": "16"}
    assert set(context.params) == {option.name for option in driver.command(one).params}
    with pytest.raises(click.BadParameter, match="'1-' is no list of CPUs"):
        command.make_context("driver.py", ["--reserved-cpus=1-", "--node-name=n1"])


def test_the_daemon_set_gives_only_options_that_there_are() -> None:
    EXAMPLE.check_installation(EXAMPLE.module.command(cpus(Path("/sys"))))
