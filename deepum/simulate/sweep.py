"""Many points of one task over the cores of this machine, or over a cluster: what comes of each, in
the order of the points.

Who runs what where is left to executors: `concurrent.futures`' own pool of processes, and Dask's,
which has the same interface (`dask.distributed.Client.get_executor`). There is no scheduling here.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from deepum.errors import EXIT_FAILED, DeepumError, UsageError
from deepum.simulate.progress import Bar

P = TypeVar("P")
R = TypeVar("R")

_CONNECTING_S = 20


@dataclass(frozen=True)
class Failure:
    """A point that came to nothing: the one line that says so, and the exit code of a command of
    which it is all.
    """

    line: str
    exit_code: int = EXIT_FAILED


@dataclass(frozen=True)
class Done(Generic[P, R]):
    """A point and what came of it."""

    point: P
    result: R | Failure


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0))


def attempt(task: Callable[[P], R], point: P, alone: bool = False) -> R | Failure:
    """The task; its failure is a result, so that the other points go on. Runs in the worker: errors
    of ours need not travel. `alone`: there are no others, and what nobody expected shows where it
    comes from.
    """
    try:
        return task(point)
    except DeepumError as error:
        return Failure(error.line, error.exit_code)
    except Exception as error:
        if alone:
            raise
        return _unexpected(point, error)


def _unexpected(point: object, error: BaseException) -> Failure:
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return Failure(f"deepum: error: {point}: {message}; report it if it is not for want of memory")


@contextmanager
def workers(count: int, cluster: str | None = None) -> Iterator[Executor]:
    """So many processes on this machine, or the workers of the Dask cluster whose scheduler is at
    that address (tcp://HOST:PORT), which have this version of deepum and see the same files. Raises
    DeepumError without Dask, UsageError where no scheduler answers.
    """
    with ExitStack() as opened:
        if cluster is None:
            # Not forked: PyTorch, which captures workloads, has threads of its own by then.
            context = multiprocessing.get_context("spawn")
            # An interrupt from the terminal goes to all of them, and shall end each at once and in
            # silence.
            pool = ProcessPoolExecutor(
                count, context, signal.signal, (signal.SIGINT, signal.SIG_DFL)
            )
            opened.callback(pool.shutdown, cancel_futures=True)
            yield pool
            return
        try:
            from dask.distributed import Client
        except ImportError:
            raise DeepumError(
                "--cluster: Dask is missing; install it with `pip install deepum[cluster]`"
            ) from None
        try:
            client = opened.enter_context(
                Client(cluster, timeout=_CONNECTING_S, set_as_default=False)
            )
        except (OSError, ValueError) as error:
            cause = " ".join(str(error).split()) or type(error).__name__
            raise UsageError(
                f"--cluster {cluster}: {cause}; give the address of a Dask scheduler, as "
                f"tcp://HOST:8786"
            ) from None
        executor: Executor = client.get_executor()
        opened.callback(executor.shutdown, wait=False)
        yield executor


def sweep(
    task: Callable[[P], R],
    points: Sequence[P],
    jobs: int | None = None,
    cluster: str | None = None,
    label: str = "",
) -> Iterator[Done[P, R]]:
    """Each point's result as soon as those before it are there too; a bar shows how far it is.
    `task`: of a module that workers can import. `jobs`: processes (a core each); with one, or one
    point, it is done in this process.

    A failure is a result. What ends the sweep early ends its workers' waiting points as well.
    Raises as `workers` does.
    """
    count = min(jobs or cores(), len(points))
    with Bar(len(points), label) as bar:
        if cluster is None and count <= 1:
            for point in points:
                result = attempt(task, point, len(points) == 1)
                bar.done()
                bar.over()
                yield Done(point, result)
            return
        with workers(count, cluster) as executor:
            futures = [executor.submit(attempt, task, point) for point in points]
            yield from _in_order(points, futures, bar)


def _in_order(
    points: Sequence[P], futures: Sequence[Future[R | Failure]], bar: Bar
) -> Iterator[Done[P, R]]:
    pending = set(futures)
    for point, future in zip(points, futures, strict=True):
        while future in pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            bar.done(len(done))
        bar.over()
        error = future.exception()  # that of the worker: it was killed, or cannot be reached
        yield Done(point, future.result() if error is None else _unexpected(point, error))
