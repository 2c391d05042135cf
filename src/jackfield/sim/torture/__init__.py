"""Torture: a seed draws a cluster, a workload and its disasters; the same controllers live through it, or do not."""
