"""A plain-Python reference of the decision core, compared with it command for command: one class a
duty, as in native/core, whose headers say more of each.
"""

from reference.session import Reference

__all__ = ["Reference"]
