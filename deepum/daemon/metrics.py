"""Metrics of the daemon and its sessions in the text format of Prometheus (docs/metrics.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from deepum.daemon.figures import DaemonFigures, SessionFigures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COUNTER, GAUGE = "counter", "gauge"
_Of = TypeVar("_Of", DaemonFigures, SessionFigures)


@dataclass(frozen=True)
class Metric(Generic[_Of]):
    """One metric: what it is, and its value; None: it is not known now, and is left out."""

    name: str
    kind: str
    help: str
    value: Callable[[_Of], float | None]


OF_DAEMON: tuple[Metric[DaemonFigures], ...] = (
    Metric("deepum_uptime_seconds", GAUGE, "Time since the daemon began.", lambda f: f.uptime_s),
    Metric("deepum_sessions", GAUGE, "Programs that are served now.", lambda f: f.sessions),
    Metric("deepum_served_total", COUNTER, "Programs that were served.", lambda f: f.served),
    Metric("deepum_refused_total", COUNTER, "Programs that were refused.", lambda f: f.refused),
    Metric("deepum_memory_bytes", GAUGE, "Memory of the daemon.", lambda f: f.memory_bytes),
)
_VIRTUAL = "by the clock of the simulated GPU; only there"
OF_SESSION: tuple[Metric[SessionFigures], ...] = (
    Metric(
        "deepum_session_began_seconds",
        GAUGE,
        "When the session began, since the epoch.",
        lambda f: f.began_at,
    ),
    Metric("deepum_session_launches_total", COUNTER, "Launches.", lambda f: f.launches),
    Metric("deepum_session_steps_total", COUNTER, "Steps that were found.", lambda f: f.steps),
    Metric(
        "deepum_session_step_launches",
        GAUGE,
        "Launches of the present step; 0: nothing repeats.",
        lambda f: f.step_launches,
    ),
    Metric(
        "deepum_session_capacity_bytes",
        GAUGE,
        "What managed memory may occupy of the GPUs.",
        lambda f: f.capacity_bytes,
    ),
    Metric(
        "deepum_session_resident_bytes",
        GAUGE,
        "Managed memory on the GPUs; a belief on a real one.",
        lambda f: f.resident_bytes,
    ),
    Metric(
        "deepum_session_allocated_bytes",
        GAUGE,
        "Memory that the program has allocated.",
        lambda f: f.allocated_bytes,
    ),
    Metric(
        "deepum_session_dead_bytes",
        GAUGE,
        "Of this, in PyTorch's blocks that nobody uses.",
        lambda f: f.dead_bytes,
    ),
    Metric(
        "deepum_session_in_bytes_total",
        COUNTER,
        "Bytes to the GPUs: moved on the simulated one, asked for on a real one.",
        lambda f: f.bytes_in,
    ),
    Metric(
        "deepum_session_out_bytes_total",
        COUNTER,
        "Bytes to the host, likewise.",
        lambda f: f.bytes_out,
    ),
    Metric(
        "deepum_session_prefetched_bytes_total",
        COUNTER,
        "Bytes whose prefetch was asked for.",
        lambda f: f.bytes_prefetched,
    ),
    Metric(
        "deepum_session_evicted_bytes_total",
        COUNTER,
        "Bytes whose eviction was asked for.",
        lambda f: f.bytes_evicted,
    ),
    Metric(
        "deepum_session_discarded_bytes_total",
        COUNTER,
        "Bytes dropped without a copy, since nobody needs the content.",
        lambda f: f.bytes_discarded,
    ),
    Metric(
        "deepum_session_faults_total",
        COUNTER,
        "Faults of the GPUs, as far as they are observed.",
        lambda f: f.faults,
    ),
    Metric(
        "deepum_session_prefetch_accuracy_ratio",
        GAUGE,
        "Of what was prefetched, the share that was used; simulated GPU only.",
        lambda f: f.prefetch_accuracy,
    ),
    Metric(
        "deepum_session_prefetch_coverage_ratio",
        GAUGE,
        "Of what was used, the share that was prefetched; simulated GPU only.",
        lambda f: f.prefetch_coverage,
    ),
    Metric(
        "deepum_session_prediction_accuracy_ratio",
        GAUGE,
        "Of launches for which one was predicted, the share that came as predicted.",
        lambda f: f.prediction_accuracy,
    ),
    Metric(
        "deepum_session_moves_total", COUNTER, "Commands to the mover.", lambda f: f.moves_given
    ),
    Metric(
        "deepum_session_moves_queued",
        GAUGE,
        "Commands that the mover has not handed to the driver.",
        lambda f: f.moves_untaken + f.moves_waiting,
    ),
    Metric(
        "deepum_session_holds_total",
        COUNTER,
        "Launches that were held until their memory was there.",
        lambda f: f.holds,
    ),
    Metric(
        "deepum_session_prefetch_degree",
        GAUGE,
        "Launches that prefetching may run ahead.",
        lambda f: f.prefetch_degree,
    ),
    Metric(
        "deepum_session_budget_bytes",
        GAUGE,
        "Budget of each GPU, where there is one.",
        lambda f: f.budget_bytes,
    ),
    Metric(
        "deepum_session_prefetching",
        GAUGE,
        "1: commands are given; 0: the policy is on-demand.",
        lambda f: int(f.policy != "on-demand"),
    ),
    Metric(
        "deepum_session_gpu_virtual_seconds_total",
        COUNTER,
        f"Time, {_VIRTUAL}.",
        lambda f: f.gpu_time_s,
    ),
    Metric(
        "deepum_session_compute_virtual_seconds_total",
        COUNTER,
        f"Time with kernels at work, {_VIRTUAL}.",
        lambda f: f.compute_s,
    ),
    Metric(
        "deepum_session_stall_virtual_seconds_total",
        COUNTER,
        f"Time in which kernels waited for memory, {_VIRTUAL}.",
        lambda f: f.stall_s,
    ),
)
INFO, INFO_HELP = "deepum_info", "The daemon's version; always 1."
LABELS = ("session", "pid", "program", "device")


def catalogue() -> list[tuple[str, str, str]]:
    """Name, kind and help of each metric, in the order in which they are told."""
    return [
        (INFO, GAUGE, INFO_HELP),
        *((one.name, one.kind, one.help) for one in OF_DAEMON),
        *((each.name, each.kind, each.help) for each in OF_SESSION),
    ]


def text(daemon: DaemonFigures, sessions: Sequence[SessionFigures]) -> str:
    """All metrics, as Prometheus scrapes them."""
    version = [({"version": daemon.version}, 1.0)]
    lines = [*_lines(INFO, GAUGE, INFO_HELP, version)]
    for of_daemon in OF_DAEMON:
        lines += _lines(
            of_daemon.name, of_daemon.kind, of_daemon.help, [({}, of_daemon.value(daemon))]
        )
    for of_session in OF_SESSION:
        lines += _lines(
            of_session.name,
            of_session.kind,
            of_session.help,
            [(_labels(each), of_session.value(each)) for each in sessions],
        )
    return "\n".join(lines) + "\n"


def _labels(figures: SessionFigures) -> dict[str, str]:
    return {name: str(getattr(figures, name)) for name in LABELS}


def _lines(
    name: str, kind: str, help_text: str, values: Iterable[tuple[Mapping[str, str], float | None]]
) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in values:
        if value is not None:
            pairs = ",".join(f'{label}="{_escaped(given)}"' for label, given in labels.items())
            yield f"{name}{{{pairs}}} {value!r}" if pairs else f"{name} {value!r}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
