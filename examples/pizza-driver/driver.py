"""The pizza driver: a kitchen on every node, whose pizzas are devices.

Run it with `python driver.py --node-name NODE`; `--help` tells the rest. Knows pizzas. Must not know Kubernetes.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from jackfield import driver

KITCHEN = "kitchen.pizza.example"
"""The domain of the attributes; in CEL they are `device.attributes["kitchen.pizza.example"].dough` and so on."""
BOXES = Path("/run/dra.pizza/boxes")

MENU: Mapping[str, Mapping[str, driver.AttributeValue]] = {
    "margherita-pan-pizza": {
        "dough": "pan",
        "sauce": "tomato",
        "cheese": "mozzarella",
        "toppings": "basil",
        "extraCheeseAvailable": True,
        "availableSlices": "4,6,8",
    },
    "funghi-pan-pizza": {
        "dough": "pan",
        "sauce": "tomato",
        "cheese": "mozzarella",
        "toppings": "mushroom,basil",
        "extraCheeseAvailable": True,
        "availableSlices": "4,6,8",
    },
    "pepperoni-pan-pizza": {
        "dough": "pan",
        "sauce": "tomato",
        "cheese": "mozzarella",
        "toppings": "pepperoni",
        "extraCheeseAvailable": True,
        "availableSlices": "6,8",
    },
}


class Pizzeria(driver.Driver):
    """Has one of each pizza of the menu, and puts it into a box for whoever ordered it."""

    name = "dra.pizza"

    def __init__(self, boxes: Path = BOXES) -> None:
        self._boxes = boxes

    def devices(self) -> Iterable[driver.Device]:
        """Return the menu."""
        for pizza, properties in MENU.items():
            attributes = {f"{KITCHEN}/{name}": value for name, value in properties.items()}
            yield driver.device(pizza, attributes=attributes)

    async def prepare(self, share: driver.Share) -> driver.Edits:
        """Cut the pizza as the order says, put it into a box, and hand over the box."""
        offered = str(MENU[share.device]["availableSlices"]).split(",")
        wanted = offered[0]
        for order in share.config:
            wanted = str(order.get("slices", wanted))
        if wanted not in offered:
            raise driver.Refused(f"nobody can cut it into {wanted} slices; it can be {' or '.join(offered)}")
        self._boxes.mkdir(parents=True, exist_ok=True)
        box = self._box(share)
        box.write_text(f"{share.device}, in {wanted} slices, for {share.claim}\n")
        return driver.Edits(
            env={"PIZZA": share.device, "PIZZA_SLICES": wanted},
            mounts=(driver.Mount(str(box), "/pizza"),),
        )

    async def unprepare(self, share: driver.Share) -> None:
        """Throw the box away."""
        self._box(share).unlink(missing_ok=True)

    async def restore(self, shares: tuple[driver.Share, ...]) -> None:
        """Throw away the boxes of orders that nobody remembers."""
        ordered = {self._box(share) for share in shares}
        for box in self._boxes.glob("*.txt"):
            if box not in ordered:
                box.unlink()

    def _box(self, share: driver.Share) -> Path:
        return self._boxes / f"{share.uid}-{share.device}.txt"


if __name__ == "__main__":
    driver.main(Pizzeria())
