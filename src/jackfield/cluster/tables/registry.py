"""The registry of tables: which kind is shown by which columns.

Knows all kinds by group and name. Must not know what stands in a cell, nor who asks.
"""

from collections.abc import Sequence
from typing import Final

from jackfield.cluster.tables import custom, devices, events, nodes, objects, pods
from jackfield.cluster.tables.column import Printer
from jackfield.codec import definitions, kinds
from jackfield.codec.wire import Raw, RawValue, collector_paused
from jackfield.model.names import Seconds

API_VERSION: Final = "meta.k8s.io/v1"

_PRINTERS: Final[dict[tuple[str, str], Printer[RawValue]]] = {
    ("", "Namespace"): objects.NAMESPACE,
    ("", "Node"): nodes.NODE,
    ("", "Pod"): pods.POD,
    ("", "Event"): events.EVENT,
    ("", "ConfigMap"): objects.CONFIG_MAP,
    ("", "Secret"): objects.SECRET,
    ("", "ServiceAccount"): objects.NAMED,
    ("coordination.k8s.io", "Lease"): objects.LEASE,
    ("resource.k8s.io", "DeviceClass"): objects.NAMED,
    ("resource.k8s.io", "ResourceSlice"): devices.RESOURCE_SLICE,
    ("resource.k8s.io", "ResourceClaim"): devices.RESOURCE_CLAIM,
    ("resource.k8s.io", "ResourceClaimTemplate"): objects.NAMED,
    ("resource.k8s.io", "DeviceTaintRule"): devices.DEVICE_TAINT_RULE,
    **{
        (one["spec"]["group"], one["spec"]["names"]["kind"]): custom.printer(
            one["spec"]["versions"][0].get("additionalPrinterColumns", [])
        )
        for one in definitions.definitions()
    },
}


def table(kind: kinds.Kind, rows: Sequence[Raw], now: Seconds) -> Raw:
    """Return objects as a Table; its own metadata, and the objects beside their cells, are the caller's."""
    printer = _printer(kind)
    with collector_paused():
        shown = [printer.row(one, now) for one in rows]
    return {
        "kind": "Table",
        "apiVersion": API_VERSION,
        "metadata": {},
        "columnDefinitions": printer.head,
        "rows": shown,
    }


def columns(kind: kinds.Kind) -> list[Raw]:
    """Return the head of a table of this kind."""
    return _printer(kind).head


def _printer(kind: kinds.Kind) -> Printer[RawValue]:
    return _PRINTERS.get((kind.group, kind.kind), objects.OTHER)
