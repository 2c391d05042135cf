"""A fabric manager of our own: `jackfield fabric serve`.

Knows orders, hardware and books. Must not know Kubernetes, nor who asks: faces translate.
"""
