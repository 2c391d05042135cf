"""Observe, decide, act: the loop around the decisions. No branch here knows the domain."""
