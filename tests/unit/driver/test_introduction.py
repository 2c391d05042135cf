"""What introductions to DRA show, spelt as it has to be: it is allocated and prepared on the embedded cluster."""

from pathlib import Path

import msgspec
import pytest

from jackfield import driver
from jackfield.cluster.errors import ApiError
from jackfield.testing.sysfs import Machine
from unit.driver import examples
from unit.driver.examples import Example
from unit.driver.introduced import MISSPELT, WRONG, Wrong
from unit.driver.site import Site, on_a_node

CPU = "cpu.example.com"
EXAMPLE = Example("cpu-driver")
INFORMATION = "processor\t: 0\nvendor_id\t: {}\nmodel name\t: x\n\nprocessor\t: 1\nvendor_id\t: Other\n"


def machine(folder: Path, vendor: str = "GenuineIntel", architecture: str = "x86_64") -> Machine:
    """Return a machine with two NUMA nodes of 16 CPUs each."""
    made = Machine(folder / "host")
    made.cpus({0: "0-15", 1: "16-31"}, "0-31")
    (made.proc / "cpuinfo").write_text(INFORMATION.format(vendor))
    (made.proc / "sys/kernel").mkdir(parents=True)
    (made.proc / "sys/kernel/arch").write_text(f"{architecture}\n")
    return made


def cpus(one: Machine) -> driver.Driver:
    made = EXAMPLE.module.Cpus(one.sysfs, proc=one.proc)
    assert isinstance(made, driver.Driver)
    return made


def test_twenty_cpus_are_ten_on_each_of_two_numa_nodes_and_one_more_is_of_the_maker_that_was_asked_for() -> (
    None
):
    async def scene(site: Site) -> None:
        site.apply(EXAMPLE.yaml("class"), EXAMPLE.yaml("introduction"))
        async with site.kubelet() as kubelet, site.kit(cpus(machine(site.folder))):
            claim, got = await examples.prepared(site, kubelet, CPU, "claim-cpu-capacity-20")
            assert got.environment == {
                "CPUSET_NUMA0_CPUS": "0-9",
                "CPUSET_NUMA0_CPUS_NUMA_NODE": "0",
                "CPUSET_NUMA1_CPUS": "16-25",
                "CPUSET_NUMA1_CPUS_NUMA_NODE": "1",
            }
            _, got = await examples.prepared(site, kubelet, CPU, "an-intel-cpu")
            assert got.environment["CPUSET_INTEL"] in {"10", "26"}
            assert (await kubelet.unprepare(CPU, claim))[claim.uid].error == ""

    on_a_node(scene)


def test_who_wants_one_makers_cpus_waits_where_there_are_only_anothers() -> None:
    async def scene(site: Site) -> None:
        site.apply(EXAMPLE.yaml("class"), EXAMPLE.yaml("introduction"))
        async with site.kit(cpus(machine(site.folder, "AuthenticAMD"))) as kit:
            await kit.published()
            pod = "introduction"
            await site.until(lambda: "cannot allocate all claims" in examples.message(site, pod))
            assert site.claim("an-intel-cpu").status.allocation is None

    on_a_node(scene)


@pytest.mark.parametrize(
    ("vendor", "architecture", "said"),
    [
        ("GenuineIntel", "x86_64", {"architecture": "x86_64", "vendor": "intel"}),
        ("AuthenticAMD", "x86_64", {"architecture": "x86_64", "vendor": "amd"}),
        ("HygonGenuine", "x86_64", {"architecture": "x86_64", "vendor": "hygongenuine"}),
        ("", "aarch64", {"architecture": "aarch64", "vendor": "other"}),
    ],
)
def test_cpus_say_of_what_make_they_are(
    tmp_path: Path, vendor: str, architecture: str, said: dict[str, str]
) -> None:
    found = EXAMPLE.module.processor(machine(tmp_path, vendor, architecture).proc)
    assert found == {f"hardware.cpu/{name}": text for name, text in said.items()}


def test_what_the_kernel_does_not_say_is_left_out(tmp_path: Path) -> None:
    assert list(EXAMPLE.module.processor(tmp_path)) == ["hardware.cpu/architecture"]


def test_the_command_line_says_where_it_is_read(tmp_path: Path) -> None:
    one, there = EXAMPLE.module.Cpus(), machine(tmp_path)
    EXAMPLE.module.command(one).make_context(
        "driver.py", [f"--sysfs-root={there.sysfs}", f"--proc-root={there.proc}", "--node-name=n1"]
    )
    (first, _) = one.devices()
    assert first.attributes["hardware.cpu/vendor"].string == "intel"


# --- as it is shown


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_no_server_takes_is_refused_with_the_reason(wrong: Wrong) -> None:
    async def scene(site: Site) -> None:
        with pytest.raises(ApiError) as refused:
            site.apply(wrong.text)
        assert wrong.words in str(refused.value)

    on_a_node(scene)


def test_who_takes_a_domain_for_a_part_of_the_name_waits_and_is_told_of_the_claim() -> None:
    pizza = Example("pizza-driver")
    order = msgspec.yaml.decode(pizza.yaml("order").split("\n---\n")[0])
    (cel,) = order["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    cel["cel"]["expression"] = MISSPELT

    async def scene(site: Site) -> None:
        pod = pizza.yaml("order").split("\n---\n")[1]
        site.apply(pizza.yaml("class"), msgspec.yaml.encode(order).decode(), pod)
        async with site.kit(pizza.module.Pizzeria(site.folder)) as kit:
            await kit.published()
            await site.until(lambda: "my-pizza-order" in examples.message(site, "lunch"))
            assert "no such key" in examples.message(site, "lunch")

    on_a_node(scene)
