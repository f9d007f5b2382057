"""Plans of an iteration that repeats: which content leaves the device between which of its uses
(docs/planning.md).
"""

from deepum.planners.iteration import Event, Item, Iteration, Link
from deepum.planners.problem import Gap, Plan, Problem, Replayed

__all__ = ["Event", "Gap", "Item", "Iteration", "Link", "Plan", "Problem", "Replayed"]
