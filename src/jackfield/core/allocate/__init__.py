"""The DRA allocator: claims, slices and a node → an allocation, or why not.

Start reading at `allocator.py`; the rules for one device stand in `attempt.py`, the order in `search.py`. Many nodes
at once are `fleet.py`'s business.
"""

from jackfield.core.allocate.allocator import Allocator
from jackfield.core.allocate.features import Features, Profile
from jackfield.core.allocate.fleet import Fit, Fitting, Fleet, Nowhere
from jackfield.core.allocate.nodes import node_matches
from jackfield.core.allocate.outcome import AllocationError, NoFit, Reason
from jackfield.core.allocate.selectors import Selectors
from jackfield.core.allocate.state import Allocated, allocated
from jackfield.core.allocate.why import Removed, RequestWhy, Step, Why, why

__all__ = [
    "Allocated",
    "AllocationError",
    "Allocator",
    "Features",
    "Fit",
    "Fitting",
    "Fleet",
    "NoFit",
    "Nowhere",
    "Profile",
    "Reason",
    "Removed",
    "RequestWhy",
    "Selectors",
    "Step",
    "Why",
    "allocated",
    "node_matches",
    "why",
]
