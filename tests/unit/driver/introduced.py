"""What introductions to DRA show and no API server takes, with the reason that is told. Knows words, and no server."""

from typing import Final, NamedTuple

CLASS: Final = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {name}}}
spec:
  selectors:
    - cel:
        expression: |-
          {expression}
"""
CLAIM: Final = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: my-pizza-order, namespace: default}
spec:
  devices:
    requests:
      - name: pizza
        deviceClassName: pizza-vegetarian
        selectors:
          - cel:
              expression: device.driver == "dra.pizza"
"""


class Wrong(NamedTuple):
    """An object, and what is wrong with it."""

    text: str
    words: str


WRONG: Final = {
    "a name with a capital letter": Wrong(
        CLASS.format(name="intelCpu", expression='device.driver == "cpu.example.com"'),
        "a lowercase RFC 1123 subdomain must consist of",
    ),
    "an expression about nothing": Wrong(
        CLASS.format(
            name="intel-cpu", expression='attributes["hardware.cpu/architecture"].string == "x86_64"'
        ),
        "undeclared reference to 'attributes'",
    ),
    "a request without exactly": Wrong(CLAIM, "exactly one of `exactly` or `firstAvailable` is required"),
}
MISSPELT: Final = 'device.attributes["kitchen.pizza.example/cheese"].string == "mozzarella"'
"""Is taken, and never holds."""
