"""Image classifiers have the parameters that torchvision's have."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from required import needed

torch = needed("torch")

from deepum.workloads.images import Basic, ResNet  # noqa: E402


@pytest.mark.parametrize(
    ("blocks", "basic", "parameters"),
    [
        ((2, 2, 2, 2), True, 11_689_512),  # ResNet-18
        ((3, 4, 6, 3), True, 21_797_672),  # ResNet-34
        ((3, 4, 6, 3), False, 25_557_032),  # ResNet-50
    ],
)
def test_a_resnet_has_its_parameters(blocks: Sequence[int], basic: bool, parameters: int) -> None:
    with torch.device("meta"):
        model = ResNet(blocks, Basic, 1) if basic else ResNet(blocks)
        found = model(torch.empty(2, 3, 64, 64))
    assert sum(one.numel() for one in model.parameters()) == parameters
    assert found.shape == (2, 1000)
