"""Whose field is whose: the books of all writers, and what an apply comes to."""
