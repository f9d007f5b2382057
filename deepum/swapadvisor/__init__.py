"""SwapAdvisor (Huang, Jin and Li, ASPLOS 2020): a joint search over the schedule of a dataflow
graph's operators, the size classes of its memory pool, and what is swapped (docs/swapadvisor.md).
"""

from deepum.swapadvisor.allocation import Allocation, Sizes
from deepum.swapadvisor.engine import Engine, Move, Outcome, SwapPlan
from deepum.swapadvisor.graph import Graph, Operator, Tensor, Use

__all__ = [
    "Allocation",
    "Engine",
    "Graph",
    "Move",
    "Operator",
    "Outcome",
    "Sizes",
    "SwapPlan",
    "Tensor",
    "Use",
]
