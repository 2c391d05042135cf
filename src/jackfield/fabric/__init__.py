"""The Fabric port over the managers that exist.

Knows how each is spoken to. Must not know why a device is moved.
"""
