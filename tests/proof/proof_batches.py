"""Which programs run in one process, under which settings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from proof_programs import Program, random_program

from deepum.configuration.resolve import resolve
from deepum.configuration.settings import BY_NAME
from deepum.device import Device
from deepum.launcher.environment import child_environment

ORDERS = BY_NAME["eviction_order"].choices


OFFSETS = (0, 0, 512, 0, 0, 0, (1 << 20) + 512)


@dataclass(frozen=True)
class Batch:
    """Programs that one process runs one after the other, and under which settings (text,
    by name).
    """

    number: int
    flavour: str
    seeds: tuple[int, ...]
    settings: dict[str, str] = field(hash=False)
    lock_step: bool = True
    random_eviction: int = 0  # the driver's own, a seed
    late: int = 0  # launches by which commands come late, at most
    slow: bool = False  # the mover takes its time between two calls of the driver
    offset: int = 0  # bytes from a UM block's beginning to that of each managed allocation
    gone: int = 0  # launches after which the daemon is gone; 0: it stays

    def __str__(self) -> str:
        order = self.settings["eviction_order"] if self.settings["policy"] == "correlation" else ""
        words = [
            str(self.number),
            self.flavour,
            self.settings["policy"],
            order,
            "" if self.lock_step else "free",
        ]
        words += [
            f"late{self.late}" if self.late else "",
            f"gone{self.gone}" if self.gone else "",
            "slow" if self.slow else "",
            "offset" if self.offset else "",
        ]
        return "-".join(
            filter(None, [*words, "invalidation" if self.settings["invalidation"] == "1" else ""])
        )

    def programs(self) -> list[Program]:
        """Generated anew."""
        return [random_program(seed, self.flavour) for seed in self.seeds]

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """As `deepum run --device sim` makes it; what is the caller's (the runtime folder, for one)
        stays.
        """
        values = resolve(
            {name: BY_NAME[name].parse(text, name) for name, text in self.settings.items()}, {}
        )
        made, _ = child_environment(values, Device("v100-16gb"), base | {"DEEPUM_SIM_DEVICES": "2"})
        made |= {name: base[name] for name in base if name.startswith("DEEPUM_")}
        made["DEEPUM_SYNC"] = str(int(self.lock_step))
        made["DEEPUM_SIM_RANDOM_EVICTION"] = str(self.random_eviction)
        made["DEEPUM_SIM_MANAGED_OFFSET"] = str(self.offset)
        # late_daemon's.
        made["DEEPUM_PROOF_LATE"], made["DEEPUM_PROOF_GONE"] = str(self.late), str(self.gone)
        if self.slow:
            made["LD_LIBRARY_PATH"] = base["DEEPUM_PROOF_SLOW"] + ":" + made["LD_LIBRARY_PATH"]
        return made


# Programs a process: graphs and values are few, since from the first replay or wait on nothing is
# discarded in that process.
_SIZES = {
    "streams": 50,
    "graphs": 2,
    "devices": 12,
    "renewed": 40,
    "captures": 30,
    "managed": 20,
    "silent": 10,
    "threads": 30,
}
_SIZES |= {"contexts": 12, "crowd": 4, "values": 2}
_TURN = (
    *(
        "streams",
        "graphs",
        "renewed",
        "graphs",
        "captures",
        "graphs",
        "streams",
        "graphs",
        "threads",
        "graphs",
        "renewed",
        "graphs",
    ),
    *(
        "devices",
        "graphs",
        "managed",
        "graphs",
        "captures",
        "graphs",
        "silent",
        "graphs",
        "streams",
        "graphs",
        "devices",
    ),
    *("contexts", "crowd", "values"),
)
# More of these out of lock-step, where discards are under way for long.
_FREE = ("devices", "contexts", "devices", "crowd", "graphs")
_MOVES = BY_NAME["moves"].choices  # how the mover waits out of lock-step
_LOST = ("streams", "renewed", "devices")


def batches(programs: int, seed: int) -> list[Batch]:
    """Batches that have so many programs together, a quarter as many more out of lock-step, where
    moves and launches race, and another quarter with duplicates (READ_MOSTLY); a tenth as many with
    several devices, contexts or very many streams, out of lock-step; and a fortieth as many that
    lose their daemon.

    Each setting takes each of its values, in step lengths that share no factor.
    """
    made: list[Batch] = []
    left, next_seed = programs, seed * 1_000_000
    while left > 0:
        n = len(made)
        flavour = _TURN[n % len(_TURN)]
        count = min(left, _SIZES[flavour])
        settings = {
            "gpu_memory": "96MiB" if n % 5 == 2 else "64MiB",
            "policy": "on-demand" if n % 13 == 7 else "correlation",
            "eviction_order": ORDERS[(n + n // 8) % len(ORDERS)],
            "invalidation": "0" if n % 11 == 2 else "1",
            "prefetch_degree": ("2000", "2", "32", "2000", "0")[n % 5] if n % 11 else "1",
            "headroom_blocks": ("0", "16", "3")[(n // 2) % 3],
            "marker_interval": ("1", "16", "4", "64")[(n // 3) % 4],
            "chain_steps": ("8", "1", "64")[(n // 4) % 3],
            "confidence_launches": ("4096", "16")[(n // 5) % 2],
            "launch_queue": ("1024", "0", "8")[(n // 6) % 3],
        }
        lock_step = n % 17 != 4
        late = (0, 0, 3, 0, 12, 40)[n % 6 if lock_step else 0]
        seeds = tuple(range(next_seed, next_seed + count))
        driver_evicts = n if n % 9 == 5 else 0
        made.append(
            Batch(
                n,
                flavour,
                seeds,
                settings,
                lock_step,
                driver_evicts,
                late,
                flavour == "threads",
                OFFSETS[n % len(OFFSETS)],
            )
        )
        left -= count
        next_seed += count
    moving, basic = (
        [batch for batch in made if batch.lock_step and batch.settings["policy"] == "correlation"],
        len(made),
    )
    quarter = moving[: basic // 4]
    for batch in quarter:
        settings = batch.settings | {"moves": _MOVES[len(made) % 3]}
        made.append(
            replace(
                batch,
                number=len(made),
                seeds=_others(batch.seeds, programs),
                settings=settings,
                lock_step=False,
                late=0,
            )
        )
    for i, batch in enumerate(quarter):
        duplicating = {
            "advice": ("all", "duplicate")[i % 2],
            "faults": "auto",
            "fault_interval": ("8", "1", "64")[i % 3],
            "fault_source": ("cupti", "uvm-tools")[i // 3 % 2],
            "eviction_order": "furthest-next-use" if i % 3 else batch.settings["eviction_order"],
        }
        lock_step = i % 4 != 3
        settings = batch.settings | duplicating
        made.append(
            replace(
                batch,
                number=len(made),
                seeds=_others(batch.seeds, 2 * programs),
                settings=settings,
                lock_step=lock_step,
            )
        )
    settings = {
        "gpu_memory": "64MiB",
        "policy": "correlation",
        "eviction_order": ORDERS[0],
        "invalidation": "1",
        "prefetch_degree": "32",
        "headroom_blocks": "0",
    }
    left, next_seed = programs // 10, seed * 1_000_000 + 3 * programs
    while left > 0:
        flavour = _FREE[len(made) % len(_FREE)]
        seeds = tuple(range(next_seed, next_seed + min(left, _SIZES[flavour])))
        settings = settings | {
            "eviction_order": ORDERS[len(made) % len(ORDERS)],
            "marker_interval": ("1", "1", "16")[len(made) // 4 % 3],
        }
        settings |= {"moves": _MOVES[len(made) // 3 % 3]}
        made.append(
            Batch(len(made), flavour, seeds, settings, lock_step=False, slow=flavour == "graphs")
        )
        left -= len(seeds)
        next_seed += len(seeds)
    left, next_seed = programs // 40, seed * 1_000_000 + 4 * programs
    while left > 0:
        n = len(made)
        seeds = tuple(range(next_seed, next_seed + min(left, 4)))
        made.append(
            Batch(n, _LOST[n % 3], seeds, settings, lock_step=n % 4 != 0, gone=50 + n * 97 % 600)
        )
        left -= len(seeds)
        next_seed += len(seeds)
    return made


def _others(seeds: tuple[int, ...], distance: int) -> tuple[int, ...]:
    return tuple(seed + distance for seed in seeds)
