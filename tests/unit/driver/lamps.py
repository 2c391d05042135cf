"""A driver for tests: lamps, which remember what they were asked."""

from collections.abc import Callable, Iterable

from jackfield import driver
from jackfield.model.claim import DeviceRequestAllocationResult

LAMPS = "lamps.example.com"
CLASS = f"""
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: lamp}}
spec: {{selectors: [{{cel: {{expression: 'device.driver == "{LAMPS}"'}}}}]}}
"""


class Lamps(driver.Driver):
    """Does as it is told, or fails where it is told to."""

    name = LAMPS

    def __init__(self, *names: str) -> None:
        self.names = list(names or ("a", "b"))
        self.calls: list[str] = []
        self.fails: dict[str, Exception] = {}
        self.sick: list[str] = []
        self.restored: tuple[driver.Share, ...] = ()
        self.shares: list[driver.Share] = []
        self.changed: Callable[[], None] = lambda: None

    def devices(self) -> Iterable[driver.Device]:
        return [driver.device(name, attributes={"colour": "warm"}) for name in self.names]

    def health(self) -> Iterable[driver.DeviceHealth]:
        return [driver.DeviceHealth("", one, driver.Health.UNHEALTHY, "it flickers") for one in self.sick]

    async def prepare(self, share: driver.Share) -> driver.Prepared:
        self.shares.append(share)
        self._take(f"prepare {share.device}")
        return driver.Prepared(
            edits=driver.Edits(env={"LAMP": share.device}), notes={"plug": f"p-{share.device}"}
        )

    async def unprepare(self, share: driver.Share) -> None:
        self._take(f"unprepare {share.device}")
        self.shares.append(share)

    async def restore(self, shares: tuple[driver.Share, ...]) -> None:
        self.restored = shares

    async def watch(self, changed: Callable[[], None]) -> None:
        self.changed = changed

    def _take(self, call: str) -> None:
        self.calls.append(call)
        if call in self.fails:
            raise self.fails[call]


def claim(name: str, count: int = 1, extra: str = "") -> str:
    """Return a claim for lamps, and a pod that uses it, in YAML."""
    return f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}, namespace: default}}
spec:
  devices:
    requests: [{{name: lamp, exactly: {{deviceClassName: lamp, count: {count}}}}}]
    {extra}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default}}
spec:
  resourceClaims: [{{name: lamp, resourceClaimName: {name}}}]
  containers: [{{name: main, image: app, resources: {{claims: [{{name: lamp}}]}}}}]
"""


def given(
    device: str, request: str = "lamp", pool: str = "n1", driver: str = LAMPS
) -> DeviceRequestAllocationResult:
    """Return one device given to one request."""
    return DeviceRequestAllocationResult(request, driver, pool, device)
