"""The import contracts of pyproject.toml: they hold, and each of them can be broken."""

from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
from grimp import ImportGraph, build_graph
from importlinter import api
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract
from importlinter.domain.contract import Contract

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "jackfield"
TYPES: dict[str, type[Contract]] = {
    "layers": LayersContract,
    "forbidden": ForbiddenContract,
    "independence": IndependenceContract,
}

LAYERS = "Knowledge flows down"
APART = "Adapters do not know each other, nor do faces"
PURITY = "The core is pure"
PORTS = "Controllers reach the world only through ports"

SINS = [
    (LAYERS, "jackfield.model.names", "jackfield.core"),
    (LAYERS, "jackfield.model.names", "jackfield.cli"),
    (LAYERS, "jackfield.core", "jackfield.ports"),
    (LAYERS, "jackfield.ports", "jackfield.controllers"),
    (LAYERS, "jackfield.controllers", "jackfield.codec"),
    (LAYERS, "jackfield.testing", "jackfield.cluster"),
    (LAYERS, "jackfield.cluster", "jackfield.sim"),
    (LAYERS, "jackfield.sim", "jackfield.cli"),
    (LAYERS, "jackfield.cluster", "jackfield.fabric_manager"),
    (LAYERS, "jackfield.fabric_manager", "jackfield.cluster"),
    (APART, "jackfield.fabric.vendors.nec", "jackfield.fabric.vendors.fsas_fm"),
    (APART, "jackfield.fabric.vendors.sunfish", "jackfield.fabric.vendors.redfish"),
    (APART, "jackfield.fabric_manager.faces.nec", "jackfield.fabric_manager.faces.fsas"),
    (PURITY, "jackfield.model.names", "time"),
    (PURITY, "jackfield.core", "asyncio"),
    (PURITY, "jackfield.core", "logging"),
    (PURITY, "jackfield.core", "random"),
    (PORTS, "jackfield.ports", "os"),
    (PORTS, "jackfield.controllers", "socket"),
]


@cache
def _graph() -> ImportGraph:
    return build_graph("jackfield", include_external_packages=True, cache_dir=None)


@cache
def _contracts() -> dict[str, Contract]:
    configuration = api.read_configuration(str(ROOT / "pyproject.toml"))
    session = configuration["session_options"]
    return {
        options["name"]: TYPES[options["type"]](options["name"], session, options)
        for options in configuration["contracts_options"]
    }


def _kept(contract: Contract, graph: ImportGraph) -> bool:
    return contract.check(deepcopy(graph), verbose=False).kept


@pytest.mark.parametrize("name", _contracts())
def test_the_contract_is_kept(name: str) -> None:
    assert _kept(_contracts()[name], _graph()), "run lint-imports to see the chain of imports"


@pytest.mark.parametrize(("name", "importer", "imported"), SINS)
def test_one_wrong_import_breaks_the_contract(name: str, importer: str, imported: str) -> None:
    graph = deepcopy(_graph())
    if imported not in graph.modules:
        graph.add_module(imported, is_squashed=not imported.startswith("jackfield"))
    graph.add_import(importer=importer, imported=imported)
    assert not _kept(_contracts()[name], graph)


def test_every_contract_is_seen_to_break() -> None:
    assert {name for name, _, _ in SINS} == set(_contracts())


def test_a_new_package_needs_a_place_among_the_layers() -> None:
    graph = deepcopy(_graph())
    graph.add_module("jackfield.utils")
    assert not _kept(_contracts()[LAYERS], graph)


def test_every_layer_names_a_module_that_exists() -> None:
    layers = [one for layer in _contracts()[LAYERS].contract_options["layers"] for one in layer.split(" | ")]
    assert [
        one for one in layers if not list(PACKAGE.glob(f"{one}.py")) + list(PACKAGE.glob(f"{one}/"))
    ] == []


@pytest.mark.parametrize("name", [PURITY, PORTS])
def test_a_fence_stands_around_modules_that_exist(name: str) -> None:
    assert set(_contracts()[name].contract_options["source_modules"]) <= _graph().modules
