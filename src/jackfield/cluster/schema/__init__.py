"""What objects of each kind are made of: Kubernetes' own from its data, ours from their definitions.

Knows which types there are. Must not know what their values mean. `of` finds the schema of a kind; `strict` holds
bodies against it, as Kubernetes' decoder does.
"""

from jackfield.cluster.schema import strict
from jackfield.cluster.schema.kinds import named, of
from jackfield.cluster.schema.library import version
from jackfield.cluster.schema.node import Node

__all__ = ["Node", "named", "of", "strict", "version"]
