"""A lead as a test wants it: these fabrics, for so long."""

from jackfield.model.names import NEVER, FabricName, Seconds


class Some:
    """Leads these fabrics for so long; remembers what was needed. A `lead.Lead`."""

    def __init__(self, *fabrics: FabricName, left: float = NEVER) -> None:
        self.fabrics = fabrics
        self.needs: list[float] = []
        self.doubts = 0
        self._left = Seconds(left)

    def leads(self, fabric: FabricName) -> bool:
        return fabric in self.fabrics

    def left(self) -> Seconds:
        return self._left

    def need(self, span: Seconds) -> None:
        self.needs.append(span)

    def doubt(self) -> None:
        self.doubts += 1
