"""The Cluster port over a real API server.

Knows HTTP, authentication, lists and watches. Must not know what any object means.
"""
