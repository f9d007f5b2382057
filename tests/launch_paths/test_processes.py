"""Several processes: a session and a budget for each, on one card or on one each; and children that
load data.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finished_run import MIB, Ran

Run = Callable[..., Ran]
ROOT = Path(__file__).resolve().parents[2]
WORKER = """
import os, sys
context_of(int(os.environ.get("RANK_DEVICE", "0")))
arrays = Arrays(16, first=int(sys.argv[1]))
for _ in range(ROUNDS):
    for k in range(16):
        arrays.double(k)
    arrays.wait()
arrays.check(ROUNDS)
"""


def sessions(ran: Ran) -> list[dict[str, Any]]:
    return [
        process
        for process in ran.statistics["processes"]
        if process["session"] is not None and process["simulated"] is not None
    ]


def start(ran: Callable[..., Ran], options: list[str], snippet: str, devices: int = 1) -> Ran:
    """Two processes at once, the second on the last of the devices."""
    both = f"""
    import os, subprocess, sys
    made = [subprocess.Popen([sys.executable, "-c", {"from path_client import *" + snippet!r}, str(100 * n + 1)],
                             env=os.environ | {{"RANK_DEVICE": str(n * ({devices} - 1))}}) for n in range(2)]
    sys.exit(sum(process.wait() for process in made))
    """
    return ran(options, both, env={"DEEPUM_SIM_DEVICES": str(devices)})


def test_two_on_one_card_have_a_budget_each(python: Run) -> None:
    ran = start(python, ["--gpu-memory", "128MiB"], WORKER)
    both = sessions(ran)
    assert len(both) == 2 and ran.statistics["warnings"] == []
    for process in both:
        assert process["simulated"]["kernels"] == 16 * (1 + 8)
        assert process["simulated"]["peak_resident_bytes"] <= 128 * MIB
        assert process["simulated"]["bytes_demand"] == 0  # what came was fetched
        assert process["session"]["core"]["bytes_evicted"] > 8 * 100 * MIB


def test_with_a_card_each_they_have_its_budget(python: Run) -> None:
    ran = start(python, ["--gpu-memory", "128MiB,256MiB"], WORKER, devices=2)
    assert len(sessions(ran)) == 2
    peaks = [device["peak_resident_bytes"] for device in ran.statistics["devices"]]
    assert 100 * MIB < peaks[0] <= 128 * MIB < 200 * MIB < peaks[1] <= 256 * MIB
    assert [device["kernels"] for device in ran.statistics["devices"]] == [16 * 9] * 2


def test_a_limit_over_all_of_them_stops_the_one_that_exceeds_it(python: Run) -> None:
    ran = python(
        ["--managed-limit", "512MiB"],
        """
        import subprocess, sys
        from path_client import *
        context_of(0)
        mine = device(100 * MIB)  # 400 MiB
        asks = "from path_client import *; context_of(0); print(int(d.cuMemAlloc(int(sys.argv[1]) * MIB)[0]))"
        for size in (100, 120):
            subprocess.run([sys.executable, "-c", "import sys; " + asks, str(size)], check=True)
        """,
    )
    assert ran.out.split() == ["0", "2"]  # CUDA_ERROR_OUT_OF_MEMORY


LOADER = """
import sys, torch
from torch.utils.data import DataLoader, Dataset
class Pictures(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((4096,), float(i))
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
seen = []
for epoch in range(2):  # the workers are forked after CUDA was used
    for batch in DataLoader(Pictures(), batch_size=8, num_workers=2, pin_memory=True, multiprocessing_context="fork"):
        x = batch.cuda(non_blocking=True)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        seen += x.cpu()[:, 0].tolist()
assert seen == [float(i) for i in range(64)] * 2, seen
print("seen", len(seen))
"""


@pytest.mark.torch
def test_workers_that_load_data_are_forked_from_a_program_that_uses_the_gpu(python: Run) -> None:
    ran = python(["--gpu-memory", "320MiB"], LOADER)
    assert ran.out.endswith("seen 128\n")
    assert len(ran.statistics["processes"]) == 1 and ran.statistics["warnings"] == []
    assert ran.statistics["prefetch_coverage"] > 0.9
    assert ran.statistics["bytes_evicted"] > 16 * 100 * MIB


@pytest.mark.torch
def test_ranks_of_torchrun_with_a_card_each(run: Run) -> None:
    torchrun = (
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        2,
    )
    script = (
        ROOT / "examples" / "train_ddp.py",
        "--layers",
        6,
        "--width",
        1024,
        "--batch",
        64,
        "--steps",
        4,
    )
    ran = run(["--gpu-memory", "96MiB,80MiB"], *torchrun, *script, env={"DEEPUM_SIM_DEVICES": "2"})
    for rank in (0, 1):
        assert ran.out.count(f"rank {rank} on cuda:{rank}, step ") == 4
    both = [process for process in ran.statistics["processes"] if process["session"] is not None]
    assert len(both) == 2
    first, second = ran.statistics["devices"]
    assert first["bytes_evicted"] > 0 and second["bytes_evicted"] > 0
    assert first["peak_resident_bytes"] <= 96 * MIB and second["peak_resident_bytes"] <= 80 * MIB
