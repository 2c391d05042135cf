"""Objects as `kubectl get` shows them: one module per group of kinds, and one that knows them all."""

from jackfield.cluster.tables.registry import columns, table

__all__ = ["columns", "table"]
