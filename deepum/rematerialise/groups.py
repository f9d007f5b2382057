"""Evicted contents that depend on each other, as classes of a union-find structure (h_DTR^eq of
Kirisame et al., "Dynamic Tensor Rematerialization", ICLR 2021, appendix C): what it costs to get
one of them back is taken to be the cost of its class.

Classes only grow together; a content that comes back takes its cost out of its class and starts one
of its own, which leaves two halves that it joined in one. That is the paper's approximation.
"""

from __future__ import annotations

from collections.abc import Iterator

from deepum.rematerialise.graph import Content


class Group:
    """A node of the union-find structure; of a root, `cost` is nanoseconds of the whole class."""

    __slots__ = ("cost", "parent")

    def __init__(self, cost: float) -> None:
        self.cost = cost
        self.parent: Group | None = None

    def root(self) -> Group:
        """The root, with the path to it halved."""
        node = self
        while node.parent is not None:
            if node.parent.parent is not None:
                node.parent = node.parent.parent
            node = node.parent
        return node


def neighbours(content: Content) -> Iterator[Content]:
    """What it is computed from, and what is computed from it."""
    if content.producer is not None:
        yield from content.producer.inputs
    for reader in content.readers:
        yield from reader.living()


def evicted(content: Content) -> None:
    """The content left: it joins the classes of its evicted neighbours."""
    root = Group(content.cost)
    content.group = root
    for one in neighbours(content):
        if one is not content and one.group is not None and one.is_evicted():
            other = one.group.root()
            if other is not root:
                other.parent = root
                root.cost += other.cost


def returned(content: Content) -> None:
    """The content came back, or its path is lost."""
    if content.group is not None:
        root = content.group.root()
        root.cost = max(0.0, root.cost - content.cost)
        content.group = None


def cost_of_neighbours(content: Content) -> float:
    """Nanoseconds of the classes next to a resident content."""
    costs: dict[int, float] = {}
    for one in neighbours(content):
        if one.group is not None and one.is_evicted():
            root = one.group.root()
            costs[id(root)] = root.cost
    return sum(costs.values())


def exact_cost_of_neighbours(content: Content) -> float:
    """Nanoseconds of all evicted contents that it is computed from, and that are computed from it,
    through evicted ones: the paper's e*, by search.
    """
    total = 0.0
    for forward in (False, True):
        seen: set[int] = set()
        front = [content]
        while front:
            node = front.pop()
            if forward:
                near = [one for reader in node.readers for one in reader.living()]
            else:
                near = list(node.producer.inputs) if node.producer is not None else []
            for one in near:
                if id(one) not in seen and one.is_evicted():
                    seen.add(id(one))
                    total += one.cost
                    front.append(one)
    return total
