"""What launches take, from the times at which some of them had completed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deepum.core import LaunchTime
from deepum.planners.problem import Floats


def launch_ns(times: Sequence[LaunchTime], first: int, launches: int) -> Floats:
    """ns of each launch of the iteration whose first launch was number `first` of the session,
    without what its stream stood still for moves: the mean over all iterations of which times are
    known. Launches between two times share theirs evenly. Raises ValueError where not even one
    iteration is known.
    """
    known = sorted({time.launch: time.completed_at - (time.waited or 0) for time in times}.items())
    at = np.array([launch for launch, _ in known], dtype=np.float64)
    us = np.array([worked for _, worked in known], dtype=np.float64)
    if len(at) < 2 or at[-1] - at[0] < launches:
        raise ValueError("times: are known of no whole iteration")
    us = np.maximum.accumulate(us)
    numbers = np.arange(int(at[0]) + 1, int(at[-1]) + 1)
    ends = np.interp(np.arange(int(at[0]), int(at[-1]) + 1), at, us)
    number = (numbers - first) % launches
    return np.bincount(number, np.diff(ends) * 1e3, launches) / np.bincount(
        number, minlength=launches
    )
