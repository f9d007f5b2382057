"""A decoder whose caches have room for more than it has read."""

from __future__ import annotations

import pytest

from deepum.simulate import policies
from deepum.simulate.point import Point, simulate

pytestmark = pytest.mark.torch
# 16 caches of 8 MiB, of which a tenth is read, besides weights of 340 MB.
DECODER = (
    "llama-decode:batch=4,prompt=64,tokens=1,room=1024,layers=8,width=1024,heads=8,hidden=2816"
)


def test_empty_caches_stay_on_the_host_once_they_were_tried_there() -> None:
    chosen = policies.parse("deepum,deepum-clean")  # of which only the second is told of time
    found = simulate(
        Point(DECODER, chosen, "rtx4090", memory_bytes=320 << 20, steps=40, warm_up=34)
    )
    moved = {name: row.count("bytes_h2d") for name, row in found.rows.items()}
    assert moved["deepum-clean"] < moved["deepum"] / 3
    assert found.rows["deepum-clean"].ns < found.rows["deepum"].ns
