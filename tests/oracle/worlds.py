"""Random worlds with claims to allocate, over every feature of DRA; the same seed, the same worlds.

Knows the format of a case and what is worth meeting in it. Must not know any answer.
"""

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from jackfield.codec import Raw
from jackfield.codec.cases import GATES
from oracle.offers import CAPACITIES, CLASSES, DRIVERS, Offers

T = TypeVar("T")

SELECTORS = (
    "device.driver == 'gpu.example.com'",
    "device.attributes['gpu.example.com'].model == 'A100'",
    "device.attributes['gpu.example.com'].?model.orValue('') != 'L40S'",
    "has(device.attributes['gpu.example.com'].model) && device.attributes['gpu.example.com'].model in ['A100', 'H100']",
    "device.attributes[device.driver].?numa.orValue(0) == 0",
    "'numa' in device.attributes[device.driver] && device.attributes[device.driver].numa >= 1",
    "device.attributes['gpu.example.com'].?version.orValue(semver('0.1.0')).isGreaterThan(semver('1.0.0'))",
    "device.capacity[device.driver].?memory.orValue(quantity('1Gi')).compareTo(quantity('40Gi')) >= 0",
    "!device.attributes[device.driver].?faulty.orValue(false)",
    "device.allowMultipleAllocations",
    "!device.allowMultipleAllocations",
    "cel.bind(d, device.attributes['nic.example.com'], d.?speed.orValue(0) > 10)",
    "device.attributes['other.example.com'].exists(k, k == 'tier')",
    "device.attributes['resource.kubernetes.io'].?pcieRoot.orValue('').startsWith('pci')",
    "true",
)
FAILING = (
    "device.attributes['gpu.example.com'].model.isGreaterThan(semver('1.0.0'))",
    "device.attributes[device.driver].nowhere == 1",
    "device.nothing == 1",
    "unknown",
    "1 / 0 == 1",
    "device.driver ==",
)
MATCHED = (
    "gpu.example.com/model",
    "gpu.example.com/numa",
    "resource.kubernetes.io/pcieRoot",
    "nic.example.com/speed",
    "gpu.example.com/faulty",
    "gpu.example.com/version",
    "model",
)
LABELS = {"region": "region-1", "planet": "earth", "rack": "7"}


class Worlds:
    """Draws one world after the other."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def case(self, number: int) -> Raw:
        """Return the case of that number, whatever was drawn before."""
        chance = random.Random(f"{self._seed}/world/{number}")  # noqa: S311 - chance in tests is not cryptography
        return _World(chance).case(f"{self._seed}-{number}")


class _World:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._features = self._gates()
        self._offers = Offers(chance, self._features)

    def case(self, name: str) -> Raw:
        slices = self._offers.slices()
        devices = [
            (one["spec"]["driver"], one["spec"]["pool"]["name"], device)
            for one in slices
            for device in one["spec"].get("devices", ())
        ]
        case: Raw = {
            "name": name,
            "features": self._features,
            "classes": self._classes(),
            "claims": [
                self._claim(number) for number in range(self._chance.choices((1, 2, 3), (6, 3, 1))[0])
            ],
            "slices": slices,
            **self._held(devices),
        }
        if self._chance.random() < 0.7:
            case["node"] = {"metadata": {"name": "node-1", "labels": dict(LABELS)}}
        return case

    def _often(self, share: float) -> bool:
        return self._chance.random() < share

    def _some(self, of: Sequence[T], most: int) -> list[T]:
        return self._chance.sample(list(of), self._chance.randint(0, min(most, len(of))))

    def _gates(self) -> list[str]:
        known = [name for name in GATES if name != "DRAListTypeAttributes"]
        if self._often(0.5):
            return known
        lists = ["DRAListTypeAttributes"] if self._often(0.1) else []
        return [name for name in known if self._often(0.7)] + lists

    def _classes(self) -> list[Raw]:
        classes: list[Raw] = []
        for name, driver in CLASSES.items():
            spec: Raw = {"selectors": [_selector(f"device.driver == '{driver}'")]} if driver else {}
            if self._often(0.02):
                spec["selectors"] = [_selector(self._chance.choice(FAILING))]
            if self._often(0.3):
                spec["config"] = [
                    _config(driver or "any.example.com", {"of": name, "n": n}) for n in range(2)
                ]
            classes.append({"metadata": {"name": name}, "spec": spec})
        return classes

    # --- what others hold

    def _held(self, devices: Sequence[tuple[str, str, Raw]]) -> Raw:
        whole: list[str] = []
        shares: list[str] = []
        capacity: dict[str, dict[str, str]] = {}
        for driver, pool, device in devices:
            name = f"{driver}/{pool}/{device['name']}"
            if device.get("allowMultipleAllocations") and self._often(0.3):
                shares.append(f"{name}/share-{len(shares)}")
                used = {
                    one: self._chance.choice(("1Gi", "8Gi", "500m", "3"))
                    for one in device.get("capacity", {})
                }
                if used:
                    capacity[name] = used
            elif self._often(0.15):
                whole.append(name)
        if self._often(0.05):
            whole.append("gpu.example.com/gone/device-0")
        return {
            "allocatedDevices": sorted(set(whole)),
            "allocatedSharedDeviceIDs": sorted(set(shares)),
            "aggregatedCapacity": capacity,
        }

    # --- what is asked for

    def _claim(self, number: int) -> Raw:
        requests = [
            self._request(index) for index in range(self._chance.choices((1, 2, 3, 4), (6, 4, 2, 1))[0])
        ]
        devices: Raw = {"requests": requests}
        names = [name for one in requests for name in _names(one)]
        if self._often(0.35):
            devices["constraints"] = [self._constraint(names) for _ in range(self._chance.randint(1, 2))]
        if self._often(0.3):
            devices["config"] = [
                {"requests": self._some(names, 2), **_config(self._chance.choice(DRIVERS), {"n": index})}
                for index in range(self._chance.randint(1, 2))
            ]
        metadata = {"name": f"claim-{number}", "namespace": "default", "uid": f"uid-{number}"}
        return {"metadata": metadata, "spec": {"devices": devices}}

    def _request(self, index: int) -> Raw:
        name = f"request-{index}"
        if self._often(0.25):
            alternatives = range(self._chance.randint(1, 3))
            return {
                "name": name,
                "firstAvailable": [{"name": f"sub-{n}", **self._ask()} for n in alternatives],
            }
        exactly = self._ask()
        if self._often(0.1):
            # The gate is on for good; without it even "false" would be refused, which no cluster can show.
            exactly["adminAccess"] = self._often(0.8) or "DRAAdminAccess" not in self._features
        return {"name": name, "exactly": exactly}

    def _ask(self) -> Raw:
        ask: Raw = {
            "deviceClassName": self._chance.choices([*CLASSES, "no-such-class"], (8, 4, 2, 3, 0.1))[0]
        }
        count = self._chance.choices((1, 2, 3, 5, 33), (10, 5, 3, 1, 0.1))[0]
        ask |= (
            {"allocationMode": "All"}
            if self._often(0.15)
            else {"allocationMode": "ExactCount", "count": count}
        )
        extras: Sequence[tuple[float, str, Callable[[], object]]] = (
            (0.5, "selectors", self._selectors),
            (0.3, "tolerations", lambda: [self._toleration() for _ in range(self._chance.randint(1, 2))]),
            (0.25, "capacity", lambda: {"requests": self._amounts()}),
        )
        return ask | {name: draw() for share, name, draw in extras if self._often(share)}

    def _selectors(self) -> list[Raw]:
        number = self._chance.choices((1, 2), (4, 1))[0]
        return [
            _selector(self._chance.choice(FAILING if self._often(0.03) else SELECTORS)) for _ in range(number)
        ]

    def _toleration(self) -> Raw:
        toleration: Raw = {"operator": self._chance.choice(("Exists", "Equal"))}
        toleration |= {"key": self._chance.choice(("maint", "hot"))} if self._often(0.9) else {}
        if toleration["operator"] == "Equal":
            toleration["value"] = self._chance.choice(("soon", "now", ""))
        if self._often(0.6):
            toleration["effect"] = self._chance.choice(("NoSchedule", "NoExecute", "None"))
        return toleration

    def _amounts(self) -> Raw:
        amounts = ("0", "1", "500m", "1Gi", "3Gi", "10Gi", "16Gi", "40Gi", "1500M", "200Gi")
        return {name: self._chance.choice(amounts) for name in self._some((*CAPACITIES, "absent"), 2)}

    def _constraint(self, names: Sequence[str]) -> Raw:
        kind = self._chance.choices(("matchAttribute", "distinctAttribute"), (2, 1))[0]
        constraint: Raw = {kind: self._chance.choice(MATCHED)}
        if self._often(0.5):
            constraint["requests"] = self._some(names, 3)
        return constraint


def _selector(expression: str) -> Raw:
    return {"cel": {"expression": expression}}


def _config(driver: str, parameters: Raw) -> Raw:
    return {"opaque": {"driver": driver, "parameters": parameters}}


def _names(request: Raw) -> list[str]:
    subs = [f"{request['name']}/{one['name']}" for one in request.get("firstAvailable", ())]
    return [request["name"], *subs]
