"""One table of behaviours that every Cluster shows, whoever stands behind it."""

from typing import Final

from conformance import cluster_claims, cluster_watching, cluster_writing
from conformance.cluster_objects import Behaviour

PATIENCE_SECONDS: Final = 20.0
"""How long a behaviour may take to show."""
BEHAVIOURS: Final[tuple[Behaviour, ...]] = (
    *cluster_writing.BEHAVIOURS,
    *cluster_claims.BEHAVIOURS,
    *cluster_watching.BEHAVIOURS,
)
