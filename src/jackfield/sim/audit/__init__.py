"""The audit: looks at every change as it happens, against what must never be, and counts what the play costs."""

from jackfield.sim.audit.audit import Audit as Audit
from jackfield.sim.audit.audit import ViolationError as ViolationError
from jackfield.sim.audit.checkers import Checker as Checker
from jackfield.sim.audit.ledger import TITLE as TITLE
from jackfield.sim.audit.ledger import PodLife as PodLife
from jackfield.sim.audit.ledger import Summary as Summary
