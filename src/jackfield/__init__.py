"""Jackfield patches accelerators out of a fabric's pool to running Kubernetes nodes."""

__version__ = "0.1.0"
