"""Graphs that tests of SwapAdvisor share: the paper's example, and random ones."""

from __future__ import annotations

import random

from deepum.swapadvisor import Graph, Operator, Tensor, Use


def reads(*tensors: int) -> tuple[Use, ...]:
    return tuple(Use(tensor, True, False) for tensor in tensors)


def makes(tensor: int) -> tuple[Use, ...]:
    return (Use(tensor, False, True),)


CONCAT = 5  # the operator whose end Figure 1 shows
LEFT_FIRST = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
RIGHT_FIRST = [0, 2, 3, 4, 1, 5, 6, 10, 7, 8, 9]


def figure_1() -> Graph:
    """Figure 1 (a): A0 to A5 are tensors 0 to 5, W1 to W4 are 6 to 9, bytes stand for MB. A2 and A5
    have two. The backward pass, which the figure leaves out, is there for what is needed when.
    """
    one = Tensor(1)
    weight = Tensor(1, starts=True, stays=True)
    operators = (
        Operator("data", 0, makes(0)),
        Operator("conv1", 1, reads(0, 6) + makes(1)),
        Operator("conv2", 1, reads(0, 7) + makes(2)),
        Operator("conv3", 1, reads(2, 8) + makes(3)),
        Operator("conv4", 1, reads(3, 9) + makes(4)),
        Operator("concat", 1, reads(1, 4) + makes(5)),
        Operator("concat'", 1, reads(1, 4, 5)),
        Operator("conv4'", 1, reads(3, 9)),
        Operator("conv3'", 1, reads(2, 8)),
        Operator("conv2'", 1, reads(0, 7)),
        Operator("conv1'", 1, reads(0, 6)),
    )
    tensors = (one, one, Tensor(2), one, one, Tensor(2), weight, weight, weight, weight)
    return Graph(operators, tensors)


def random_graph(seed: int, operators: int = 12, parameters: int = 4, sizes: int = 4) -> Graph:
    """Operators that read what others made and parameters, and change some of the latter; some of
    what they make is never read, some stays.
    """
    chance = random.Random(seed)
    tensors = [
        Tensor(chance.randint(1, sizes), starts=True, stays=chance.random() < 0.8)
        for _ in range(parameters)
    ]
    made: list[int] = []
    nodes = []
    for number in range(operators):
        uses: dict[int, Use] = {}
        for tensor in chance.sample(made, min(len(made), chance.randint(0, 2))):
            uses[tensor] = Use(tensor, True, chance.random() < 0.1)
        if chance.random() < 0.6:
            tensor = chance.randrange(parameters)
            uses[tensor] = Use(tensor, True, chance.random() < 0.4)
        if chance.random() < 0.9 or not uses:
            tensors.append(Tensor(chance.randint(1, sizes), stays=chance.random() < 0.1))
            made.append(len(tensors) - 1)
            uses[made[-1]] = Use(made[-1], False, True)
        nodes.append(Operator(f"op{number}", chance.randint(1, 9), tuple(uses.values())))
    return Graph(tuple(nodes), tuple(tensors))
