"""The embedded cluster: the part of Kubernetes that all this needs, in memory."""
