"""The genetic algorithm (section 5): individuals are a schedule and a memory pool, their fitness is
the time that the simulated engine takes for the plan.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from deepum.planners import Link
from deepum.swapadvisor import allocation, schedules, starts
from deepum.swapadvisor.allocation import Allocation
from deepum.swapadvisor.engine import Engine
from deepum.swapadvisor.graph import Graph, Schedule


@dataclass(frozen=True)
class Parameters:
    """population: individuals that survive a generation (the paper's N_p). pairs: that are crossed
    in one, for four children each. pool_chances: that a class number or a count mutates, one of
    them drawn for each child; schedule_chances: that an operator does. spread: standard deviation
    of a count's mutation, of the count. temperature: divides the normalized times before the
    softmax; 1 is the paper's. It ends after so many generations, or seconds. seed: the same finds
    the same in as many generations, by however many workers.
    """

    population: int = 24
    pairs: int = 12
    pool_chances: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1)
    schedule_chances: tuple[float, ...] = (0.0, 0.002, 0.02, 0.2)
    spread: float = 0.2
    temperature: float = 0.001
    generations: int | None = None
    seconds: float = 10.0
    seed: int = 1


@dataclass(frozen=True)
class Individual:
    """A chromosome, and the ns that its plan takes; infinite where it cannot run."""

    schedule: Schedule
    allocation: Allocation
    ns: float = float("inf")


@dataclass(frozen=True)
class Incumbent:
    """The best individual so far, after so many generations and plans."""

    best: Individual
    generation: int
    evaluations: int
    seconds: float


@lru_cache(maxsize=4)
def _engine(packed: bytes) -> Engine:
    graph, link, threshold = pickle.loads(packed)
    return Engine(graph, link, threshold)


def packed(graph: Graph, link: Link, threshold: int) -> bytes:
    """What a worker makes its engine of."""
    return pickle.dumps((graph, link, threshold))


@dataclass(frozen=True)
class _Pair:
    """Parents, and the numbers that their children are drawn from."""

    one: Individual
    other: Individual
    seed: tuple[int, ...]


def breed(task: tuple[bytes, Parameters, Sequence[_Pair]]) -> list[Individual]:
    """The children of some pairs: two schedules by two pools each, mutated and evaluated."""
    shared, parameters, pairs = task
    engine = _engine(shared)
    return [child for pair in pairs for child in _children(engine, parameters, pair)]


def _children(engine: Engine, parameters: Parameters, pair: _Pair) -> Iterator[Individual]:
    random = np.random.default_rng(pair.seed)
    operators, count = len(engine.graph.operators), len(engine.sizes.sizes)
    orders = schedules.crossed(
        pair.one.schedule, pair.other.schedule, int(random.integers(0, operators + 1))
    )
    pools = allocation.crossed(
        engine.sizes, pair.one.allocation, pair.other.allocation, int(random.integers(0, count + 1))
    )
    for order in orders:
        for pool in pools:
            chance = float(random.choice(parameters.schedule_chances))
            made = engine.mutated(order, chance, int(random.integers(1 << 62))) if chance else order
            chance = float(random.choice(parameters.pool_chances))
            drawn = allocation.mutated(engine.sizes, pool, chance, parameters.spread, random)
            yield evaluated(engine, made, drawn)


def evaluated(engine: Engine, schedule: Schedule, pool: Allocation) -> Individual:
    """With the time of its plan."""
    ns = engine.evaluate(schedule, pool).ns if engine.sizes.runs(pool) else float("inf")
    return Individual(schedule, pool, ns)


def survival(
    times: Sequence[float], best: float, temperature: float = 1.0
) -> npt.NDArray[np.float64]:
    """The probability of each: softmax over (best - t) / best, where `best` is the shortest time of
    all individuals so far (section 5.1). 0 for what cannot run.
    """
    normalized = (best - np.asarray(times, dtype=np.float64)) / best / temperature
    weights = np.exp(normalized - normalized.max())
    chances: npt.NDArray[np.float64] = weights / weights.sum()
    return chances


def survivors(
    individuals: Sequence[Individual],
    count: int,
    best: float,
    temperature: float,
    random: np.random.Generator,
) -> list[Individual]:
    """So many of them, none twice, drawn by their probabilities; all that can run, if they are
    fewer.
    """
    able = [one for one in individuals if one.ns < float("inf")]
    if len(able) <= count:
        return able
    chances = survival([one.ns for one in able], best, temperature)
    # The largest of log p + Gumbel noise are draws without replacement.
    with np.errstate(divide="ignore"):
        keys = np.log(chances) + random.gumbel(size=len(able))
    return [able[number] for number in np.argsort(-keys, kind="stable")[:count].tolist()]


def first_generation(engine: Engine, parameters: Parameters) -> list[Individual]:
    """The program's order in each default pool, and random ones."""
    random = np.random.default_rng((parameters.seed, 0))
    program = engine.graph.program
    wanted = starts.peaks(engine.graph, engine.sizes, program)
    made = [evaluated(engine, program, pool) for pool in starts.defaults(engine)]
    for _ in range(parameters.population):
        chance = float(random.choice((0.0, 0.01, 0.1, 1.0)))
        order = engine.mutated(program, chance, int(random.integers(1 << 62)))
        made.append(evaluated(engine, order, starts.random_allocation(engine, wanted, random)))
    return made


def search(
    engine: Engine, parameters: Parameters, executor: Executor | None = None, workers: int = 1
) -> Iterator[Incumbent]:
    """After each generation, the best individual so far; nothing where none can run. `executor`
    evaluates the children, `workers` parts at a time; else this process does.
    """
    began = time.monotonic()
    population = first_generation(engine, parameters)
    evaluations = len(population)
    able = [one for one in population if one.ns < float("inf")]
    if not able:
        return
    best = min(able, key=lambda one: one.ns)
    shared = packed(engine.graph, engine.link, engine.threshold) if executor else b""
    generation = 0
    while True:
        yield Incumbent(best, generation, evaluations, time.monotonic() - began)
        if (
            parameters.generations is not None and generation >= parameters.generations
        ) or time.monotonic() - began >= parameters.seconds:
            return
        generation += 1
        random = np.random.default_rng((parameters.seed, generation))
        parents = random.integers(0, len(population), (parameters.pairs, 2)).tolist()
        pairs = [
            _Pair(population[one], population[other], (parameters.seed, generation, number))
            for number, (one, other) in enumerate(parents)
        ]
        if executor is None:
            children = [child for pair in pairs for child in _children(engine, parameters, pair)]
        else:
            parts = [pairs[start::workers] for start in range(workers)]
            tasks = [(shared, parameters, part) for part in parts if part]
            # In the order of the pairs, whatever the parts are.
            bred = list(executor.map(breed, tasks))
            children = [
                child
                for number in range(len(pairs))
                for child in bred[number % workers][number // workers * 4 :][:4]
            ]
        evaluations += len(children)
        best = min([best, *children], key=lambda one: one.ns)
        population = survivors(
            [*population, *children], parameters.population, best.ns, parameters.temperature, random
        )
