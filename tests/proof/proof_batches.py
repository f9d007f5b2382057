"""Which programs run in one process, under which settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from proof_programs import FLAVOURS, Program, random_program

from deepum.device import Device
from deepum.launch import child_environment
from deepum.settings import BY_NAME, resolve

ORDERS = BY_NAME["eviction_order"].choices


@dataclass(frozen=True)
class Batch:
    """Programs that one process runs one after the other, and under which settings (text, by name)."""

    number: int
    flavour: str
    seeds: tuple[int, ...]
    settings: dict[str, str] = field(hash=False)
    lock_step: bool = True
    random_eviction: int = 0  # the driver's own, a seed

    def __str__(self) -> str:
        order = self.settings["eviction_order"] if self.settings["policy"] == "correlation" else ""
        words = [str(self.number), self.flavour, self.settings["policy"], order, "" if self.lock_step else "free"]
        return "-".join(filter(None, [*words, "invalidation" if self.settings["invalidation"] == "1" else ""]))

    def programs(self) -> list[Program]:
        """Generated anew."""
        return [random_program(seed, self.flavour) for seed in self.seeds]

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """As `deepum run --device sim` makes it; what is the caller's (the runtime folder, for one) stays."""
        values = resolve({name: BY_NAME[name].parse(text, name) for name, text in self.settings.items()}, {})
        made, _ = child_environment(values, Device("v100-16gb"), base | {"DEEPUM_SIM_DEVICES": "2"})
        made |= {name: base[name] for name in base if name.startswith("DEEPUM_")}
        made["DEEPUM_SYNC"] = str(int(self.lock_step))
        made["DEEPUM_SIM_RANDOM_EVICTION"] = str(self.random_eviction)
        return made


# Programs a process: graphs are few, since from the first replay on nothing is discarded in that process.
_SIZES = {"streams": 50, "graphs": 10, "devices": 25}


def batches(programs: int, seed: int) -> list[Batch]:
    """Batches that have so many programs together. Each setting takes each of its values, in step lengths that share no factor."""
    made: list[Batch] = []
    left, next_seed = programs, seed * 1_000_000
    while left > 0:
        n = len(made)
        flavour = FLAVOURS[(0, 0, 1, 0, 0, 1, 0, 2)[n % 8]]
        count = min(left, _SIZES[flavour])
        settings = {
            "gpu_memory": ("64MiB", "64MiB", "96MiB")[n % 3],
            "policy": "on-demand" if n % 7 == 3 else "correlation",
            "eviction_order": ORDERS[(n + n // 8) % len(ORDERS)],
            "invalidation": "0" if n % 5 == 2 else "1",
            "prefetch_degree": ("2000", "2", "32", "2000", "0")[n % 5] if n % 11 else "1",
            "headroom_blocks": ("0", "16", "3")[(n // 2) % 3],
            "marker_interval": ("1", "16", "4", "64")[(n // 3) % 4],
            "chain_steps": ("8", "1", "64")[(n // 4) % 3],
            "confidence_launches": ("4096", "16")[(n // 5) % 2],
            "launch_queue": ("1024", "0", "8")[(n // 6) % 3],
        }
        lock_step = n % 2 == 0
        made.append(Batch(n, flavour, tuple(range(next_seed, next_seed + count)), settings, lock_step, n if n % 9 == 5 else 0))
        left -= count
        next_seed += count
    return made
