"""Traces: what a program launches, which memory that touches, and how long it takes; recorded, or
made from outside sources.
"""

from deepum.trace.trace import Trace, TraceWriter, work_path

__all__ = ["Trace", "TraceWriter", "work_path"]
