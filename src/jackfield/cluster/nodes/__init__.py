"""Machines, their kubelets, and what is prepared on them."""
