"""Invariants of a view, and of a step from one to the next: what must never be seen, whatever happens.

Run after every simulated event and, as `jackfield check`, on a cluster. `state` and `step` hold at any moment,
`at_rest` and `of_fabric` only when nothing is under way, `untrue` for what somebody says he waits for. They know the
rules of the protocol as facts about objects, and must not know how they are kept.
"""

from jackfield.core.check.fabrics import of_fabric as of_fabric
from jackfield.core.check.fault import MEANINGS as MEANINGS
from jackfield.core.check.fault import Checker as Checker
from jackfield.core.check.fault import Fault as Fault
from jackfield.core.check.fault import Meaning as Meaning
from jackfield.core.check.rest import at_rest as at_rest
from jackfield.core.check.rest import overdue as overdue
from jackfield.core.check.states import state as state
from jackfield.core.check.steps import step as step
from jackfield.core.check.waits import untrue as untrue
