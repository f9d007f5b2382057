"""The keys of a run's statistics, and what each means: docs/statistics.md has the same table."""

from __future__ import annotations

VERSION = 1
KEYS: dict[str, str] = {
    "version": "of this format; rises when a key changes its meaning or goes",
    "device": "`sim:MACHINE` or `cuda`",
    "policy": "`on-demand`, `correlation` or `planned`",
    "prefetch_degree": "launches that the chain may run ahead",
    "ended": "how the program ended, in words: `exited with code 0`, `was ended by SIGKILL`",
    "elapsed_s": "seconds from the program's start to its end, by the real clock: on the simulated "
    "GPU, what simulating took",
    "gpu_memory_bytes": "memory of the smallest GPU, or `--gpu-memory` where that is less",
    "gpu_time_s": (
        "seconds of GPU time until the last work completed, virtual; of several processes their "
        "sum; simulated GPU only"
    ),
    "gpu_time_max_s": "the same, of the process that took longest",
    "compute_s": "of gpu_time_s, seconds in which kernels computed; in the rest they waited for "
    "memory, or there were none; simulated GPU only",
    "last_step": "the last step, from wait to wait, of a program whose waits repeat: `s` and, of "
    "these, `compute_s`; `kernels`, `faults`, `bytes_h2d`, `bytes_d2h`; one process on the "
    "simulated GPU only",
    "steady_step": "the mean of the steps that repeat, as the waits of the process that took "
    "longest tell, without the first ones: three, or half of them where there are fewer than six. "
    "As `last_step`, with `fault_batches` and `bytes_demand` (docs/simulated-gpu.md); `steps`, how "
    "many were found, `mean_of`, of how many it is the mean; `iterations` of the launches in one "
    "of them, about: where it is 2, the program may wait at every second step only; simulated GPU "
    "only",
    "iterations": "steps that were found in the launches, whole ones, of the process that made "
    "most; the first may be another than those that repeat, and is not counted then",
    "iteration_launches": "launches of a step, of the process that made most, as it was at the "
    "end; 0: nothing repeated then",
    "kernels": "kernels that ran; on a real GPU, launches seen",
    "execution_ids": "execution IDs known at the end",
    "faults": "64 KiB regions that a kernel missed; simulated GPU only",
    "fault_batches": "batches in which these were serviced; simulated GPU only",
    "bytes_h2d": "bytes moved from host to GPU, all causes; simulated GPU only",
    "bytes_d2h": "bytes moved from GPU to host, all causes; simulated GPU only",
    "bytes_prefetched": (
        "bytes prefetched: moved on the simulated GPU, asked for on a real one, where some may "
        "have been there"
    ),
    "bytes_prefetched_again": (
        "bytes asked for besides, where they were believed to be already, in case the driver had "
        "taken them"
    ),
    "bytes_prefetched_used": (
        "of these, bytes that a kernel accessed before they left again; simulated GPU only"
    ),
    "prefetch_coverage": (
        "bytes_prefetched_used / (that + bytes moved in by faults); simulated GPU only"
    ),
    "prefetch_accuracy": "bytes_prefetched_used / bytes_prefetched; simulated GPU only",
    "bytes_evicted": (
        "bytes evicted: by us and by the driver on the simulated GPU; on a real one, asked for by "
        "us"
    ),
    "bytes_invalidated": "bytes dropped without a copy because their content was dead",
    "peak_resident_bytes": "most GPU memory in use by managed memory at a time, in one process; on "
    "a real GPU a belief, made of what was launched and asked for",
    "window_mistakes": (
        "blocks evicted that were needed again at once, or fetched for nothing; each narrows the "
        "window"
    ),
    "launches_over_capacity": (
        "launches that alone need more GPU memory than there is for managed memory; they run, the "
        "driver makes room"
    ),
    "budget_overshoot_bytes": "most GPU memory that was not free beyond --gpu-memory, as the "
    "driver told after waits; what was evicted may count: no measure of residency; null without",
    "peak_remote_bytes": (
        "memory advised to stay on the host, read and written over the link: the most at a time, "
        "in one process"
    ),
    "peak_allocated_bytes": "most memory allocated at a time, in one process",
    "allocations_refused": "allocations that GPU and host memory together had no room for; what "
    "the program freed upon it (PyTorch empties its cache) may have made room",
    "allocatable_bytes": "what a process can allocate at most: of the GPUs that it used, and of "
    "host memory (`--host-memory`); the least of all processes",
    "handles_refused": (
        "requests to share managed memory with other processes or devices that the driver "
        "refused; see sharing.md"
    ),
    "table_bytes": "memory of the learned tables",
    "daemon_events": "events that the daemon took",
    "plans": "list, one for each plan of an iteration with `--policy planned`: its `launches` and "
    "`moves`, mean microseconds of an iteration `before_us` and `with_us` it, whether it was "
    "`kept`, and the `reason` why not; null without",
    "remat": "list of what `--remat` did, one a process, with the keys of `RematStatistics` "
    "(docs/rematerialise.md) and `pid`; `choice` is null unless it was `auto`",
    "warnings": "list of texts: whatever makes the figures doubtful",
    "missing": "why, by key, for each of the above that is null",
    "devices": "list, one a GPU: `memory_bytes`, `gpu_time_s`, `kernels`, `faults`, `bytes_h2d`, "
    "`bytes_d2h`, `bytes_prefetched`, `bytes_evicted` of all processes, `peak_resident_bytes` of "
    "one; simulated GPU only",
    "processes": (
        "list of `pid`, `session` (the daemon's counters), `simulated` (the simulated GPU's); "
        "null where there is none"
    ),
}
# What statistics of earlier versions lack.
ADDED_KEYS = frozenset(
    {
        "gpu_memory_bytes",
        "gpu_time_max_s",
        "missing",
        "compute_s",
        "last_step",
        "plans",
        "iterations",
        "iteration_launches",
        "remat",
        "ended",
        "elapsed_s",
        "steady_step",
        "allocations_refused",
        "allocatable_bytes",
    }
)
