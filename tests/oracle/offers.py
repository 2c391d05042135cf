"""Random ResourceSlices: pools in every state, devices with everything a device may have.

Knows what drivers publish, and what they publish by mistake. Must not know who asks for it.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import count

from jackfield.codec import Raw

DRIVERS = ("gpu.example.com", "nic.example.com")
CLASSES = {"gpu": "gpu.example.com", "nic": "nic.example.com", "gpu-too": "gpu.example.com", "anything": ""}
MODELS = ("A100", "H100", "L40S")
CAPACITIES = ("memory", "cores", "gpu.example.com/bandwidth")
BINDING = "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus"


class Offers:
    """Draws the slices of one world."""

    def __init__(self, chance: random.Random, features: Sequence[str]) -> None:
        self._chance = chance
        self._features = features
        self._numbers = count()

    def slices(self) -> list[Raw]:
        """Return the slices of some pools, in any order."""
        slices: list[Raw] = []
        for number in range(self._chance.choices((1, 2, 3, 4), (3, 4, 3, 1))[0]):
            driver = self._chance.choices(DRIVERS, (3, 1))[0]
            slices += self._pool(driver, f"pool-{number}" if self._often(0.9) else f"rack/{number}")
        self._chance.shuffle(slices)
        return slices

    def _often(self, share: float) -> bool:
        return self._chance.random() < share

    def _pool(self, driver: str, pool: str) -> list[Raw]:
        generation = self._chance.randint(1, 3)
        parts = self._chance.choices((1, 2, 3), (5, 3, 1))[0]
        counters = "DRAPartitionableDevices" in self._features and self._often(0.3)
        counters = counters or self._often(0.02)
        names = (f"device-{number}" for number in count())
        place = self._place()
        made = [self._part(driver, place, names, counters=counters) for _ in range(parts)]
        if counters:
            made.append(
                {"spec": {"driver": driver, **self._place_of(place), "sharedCounters": self._counter_sets()}}
            )
        total = len(made) + (1 if self._often(0.04) else 0)
        for one in made:
            old = self._often(0.03)
            one["spec"]["pool"] = {
                "name": pool,
                "generation": generation - 1 if old else generation,
                "resourceSliceCount": total,
            }
            one["metadata"] = {"name": f"{self._chance.choice('abc')}-slice-{next(self._numbers)}"}
        if self._often(0.08):
            made += self._older(made[0], generation)
        return made

    def _older(self, one: Raw, generation: int) -> list[Raw]:
        spec = {**one["spec"], "pool": {**one["spec"]["pool"], "generation": generation - 1}}
        return [{"metadata": {"name": f"old-slice-{next(self._numbers)}"}, "spec": spec}]

    def _part(self, driver: str, place: str, names: Iterator[str], *, counters: bool) -> Raw:
        spec: Raw = {"driver": driver, **self._place_of(place)}
        few = self._chance.choices((0, 1, 2, 4, 7), (0.3, 3, 4, 4, 1))[0]
        spec["devices"] = [
            self._device(driver, next(names), per_device=place == "perDevice", counters=counters)
            for _ in range(few)
        ]
        if spec["devices"] and self._often(0.01):
            spec["devices"].append(dict(spec["devices"][0]))
        return {"spec": spec}

    # --- where

    def _place(self) -> str:
        return self._chance.choices(
            ("here", "there", "all", "selector", "perDevice", "nowhere"), (6, 1, 3, 3, 2, 0.1)
        )[0]

    def _place_of(self, place: str) -> Raw:
        match place:
            case "here":
                return {"nodeName": "node-1"}
            case "there":
                return {"nodeName": "node-2"}
            case "all":
                return {"allNodes": True}
            case "selector":
                return {"nodeSelector": {"nodeSelectorTerms": [self._term(_LIKELIHOOD)]}}
            case "perDevice":
                return {"perDeviceNodeSelection": True}
            case _:
                return {}

    def _term(self, likelihood: Sequence[float]) -> Raw:
        if self._often(0.1):
            field = {
                "key": "metadata.name",
                "operator": "In",
                "values": [self._chance.choice(("node-1", "node-2"))],
            }
            return {"matchFields": [field]}
        expressions = [
            self._chance.choices(_REQUIREMENTS, likelihood)[0] for _ in range(self._chance.randint(1, 2))
        ]
        return {"matchExpressions": expressions} if self._often(0.98) else {}

    # --- devices

    def _device(self, driver: str, name: str, *, per_device: bool, counters: bool) -> Raw:
        device: Raw = {"name": name, "attributes": self._attributes(driver)}
        if self._often(0.6):
            shared = self._often(0.5)
            device["capacity"] = {one: self._capacity(shared=shared) for one in self._sample(CAPACITIES)}
            device |= {"allowMultipleAllocations": shared} if shared or self._often(0.1) else {}
        if counters and self._often(0.7):
            device["consumesCounters"] = [
                {"counterSet": f"set-{number}", "counters": self._counters(("1", "2", "4"))}
                for number in range(self._chance.randint(1, 2))
            ]
        if self._often(0.2):
            device["taints"] = [self._taint() for _ in range(self._chance.randint(1, 2))]
        if self._often(0.12):
            device |= {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
            device |= {"bindsToNode": True} if self._often(0.4) else {}
        if per_device:
            device |= self._place_of(self._chance.choice(("here", "here", "there", "all", "selector")))
        if "nodeSelector" in device:
            # One that cannot be read is met late by Kubernetes and at once by us, and by neither in a cluster.
            terms = [self._term(_SOUND) for _ in range(2 if self._often(0.1) else 1)]
            device["nodeSelector"] = {"nodeSelectorTerms": terms}
        return device

    def _sample(self, of: Sequence[str]) -> list[str]:
        return self._chance.sample(list(of), self._chance.randint(1, len(of)))

    def _attributes(self, driver: str) -> Raw:
        pick = self._chance.choice
        attributes: Raw = {
            "model": {"string": pick(MODELS)},
            "numa": {"int": pick((0, 1, 2))},
            "speed": {"int": pick((10, 25, 100))},
            "faulty": {"bool": pick((True, False, False))},
            "version": {"version": pick(("0.9.0", "1.0.0", "1.2.3-rc.1", "2.0.0+b"))},
            "resource.kubernetes.io/pcieRoot": {"string": pick(("pci0", "pci1"))},
            "other.example.com/tier": {"string": pick(("gold", "silver"))},
        }
        kept = {name: value for name, value in attributes.items() if self._often(0.8)}
        if self._often(0.05):
            kept["numa"] = {"string": "0"}
        if self._often(0.5 if "DRAListTypeAttributes" in self._features else 0.005):
            kept["model"] = {"strings": self._chance.sample(MODELS, self._chance.randint(1, 3))}
        # Never both spellings on one device: Kubernetes would take either, by chance.
        if self._often(0.1) and "model" in kept:
            kept[f"{driver}/model"] = kept.pop("model")
        return kept

    def _capacity(self, *, shared: bool) -> Raw:
        capacity: Raw = {"value": self._chance.choice(("40Gi", "80Gi", "16Gi", "10", "24Gi", "1500m"))}
        if shared and self._often(0.6):
            capacity["requestPolicy"] = dict(self._chance.choice(_POLICIES))
        return capacity

    def _counter_sets(self) -> list[Raw]:
        sets = 2 if self._often(0.97) else 1
        return [
            {"name": f"set-{number}", "counters": self._counters(("4", "6", "8"))} for number in range(sets)
        ]

    def _counters(self, amounts: Sequence[str]) -> Raw:
        names = ("slots", "memory") if self._often(0.97) else ("slots", "cores")
        return {name: {"value": self._chance.choice(amounts)} for name in names}

    def _taint(self) -> Raw:
        return {
            "key": self._chance.choice(("maint", "hot")),
            "value": self._chance.choice(("soon", "now", "")),
            "effect": self._chance.choice(("NoSchedule", "NoExecute", "None")),
        }


_REQUIREMENTS: Sequence[Raw] = (
    {"key": "region", "operator": "In", "values": ["region-1", "region-9"]},
    {"key": "planet", "operator": "NotIn", "values": ["mars"]},
    {"key": "planet", "operator": "Exists"},
    {"key": "moon", "operator": "DoesNotExist"},
    {"key": "rack", "operator": "Gt", "values": ["5"]},
    {"key": "rack", "operator": "Lt", "values": ["9"]},
    {"key": "region", "operator": "In", "values": ["region-2"]},
    {"key": "planet", "operator": "Exists", "values": ["bad"]},
)
_LIKELIHOOD = (6, 4, 3, 3, 1, 1, 1, 0.05)
_SOUND = (*_LIKELIHOOD[:-1], 0)
_POLICIES: Sequence[Raw] = (
    {"default": "1Gi"},
    {"default": "1Gi", "validValues": ["1Gi", "8Gi", "16Gi"]},
    {"default": "2Gi", "validRange": {"min": "2Gi", "max": "16Gi", "step": "2Gi"}},
    {"default": "1Gi", "validRange": {"min": "1Gi"}},
    {"default": "1Gi", "validRange": {"min": "1Gi", "max": "10Gi"}},
    {"default": "1", "validRange": {"min": "1", "step": "3"}},
    {"validRange": {"min": "500m", "step": "1"}},
)
