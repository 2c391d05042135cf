"""Benchmarks: each module has a `main` that prints its figures and fails if one is out of its bound."""
