"""What the numbers in the settings mean."""

from __future__ import annotations

from deepum.core import CoreSettings

CORRELATION = 1  # a policy
LEAST_RECENTLY_MIGRATED, FURTHEST_NEXT_USE = 0, 2  # orders of eviction
HISTORY = 1  # a prediction
REMOTE, DUPLICATE = 1, 2  # bits of advice
BY_OPERATORS = 1  # how it becomes known what launches write
SHORT_QUEUE = 64  # launches: a driver's queue below that does not let the host run ahead of the GPU


def by_next_use(settings: CoreSettings) -> bool:
    return settings.eviction_order == FURTHEST_NEXT_USE and settings.policy == CORRELATION
