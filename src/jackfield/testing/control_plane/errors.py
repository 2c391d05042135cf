"""What can go wrong with a control plane. Knows words. Must not know how it runs."""


class ControlPlaneError(Exception):
    """It cannot be built, did not start, or refused to do what it was asked; the text says which and why."""
