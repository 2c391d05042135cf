"""The managers of vendors, one file each.

Each knows one manager's ways. None must know another.
"""
