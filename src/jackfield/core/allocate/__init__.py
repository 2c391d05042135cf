"""The DRA allocator: claims, slices and a node → an allocation, or why not.

Start reading at `allocator.py`; the rules for one device stand in `attempt.py`, the order in `search.py`. Many nodes
at once are `fleet.py`'s business.
"""

from jackfield.core.allocate.allocator import Allocator
from jackfield.core.allocate.everywhere import why_nowhere
from jackfield.core.allocate.features import Features, Profile
from jackfield.core.allocate.fleet import Fit, Fitting, Fleet, Nowhere
from jackfield.core.allocate.nodes import node_matches
from jackfield.core.allocate.outcome import AllocationError, NoFit, Reason
from jackfield.core.allocate.reasons import (
    Cause,
    Everywhere,
    Group,
    Miss,
    NodesWhy,
    Removed,
    RequestWhy,
    Step,
    Why,
)
from jackfield.core.allocate.selectors import Selectors
from jackfield.core.allocate.sentences import sentences, sentences_everywhere
from jackfield.core.allocate.state import Allocated, allocated
from jackfield.core.allocate.trial import Holders, holders
from jackfield.core.allocate.why import why

__all__ = [
    "Allocated",
    "AllocationError",
    "Allocator",
    "Cause",
    "Everywhere",
    "Features",
    "Fit",
    "Fitting",
    "Fleet",
    "Group",
    "Holders",
    "Miss",
    "NoFit",
    "NodesWhy",
    "Nowhere",
    "Profile",
    "Reason",
    "Removed",
    "RequestWhy",
    "Selectors",
    "Step",
    "Why",
    "allocated",
    "holders",
    "node_matches",
    "sentences",
    "sentences_everywhere",
    "why",
    "why_nowhere",
]
