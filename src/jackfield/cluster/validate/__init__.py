"""What is wrong with an object: one module per kind, and one that knows them all."""

from jackfield.cluster.validate.checks import Change
from jackfield.cluster.validate.compositions import undecodable
from jackfield.cluster.validate.kept import bytes_problem
from jackfield.cluster.validate.objects import problems

__all__ = ["Change", "bytes_problem", "problems", "undecodable"]
