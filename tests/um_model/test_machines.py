"""The presets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deepum._core import ffi, lib

ROOT = Path(__file__).resolve().parents[2]

# Of a host whose memory has a size; the others hold all there is.
HOST = (
    "host_memory_bytes",
    "disk_read_gbps",
    "disk_write_gbps",
    "disk_read_latency_ns",
    "disk_write_latency_ns",
    "disk_buffer_bytes",
    "host_keeps",
)


# What drivers differ in: prefetches cost the driver nothing beside their copies, and discards
# empty blocks.
KIND = ("block_ns", "discards", "queued_prefetch_faults", "blocking_calls")


def presets() -> dict[str, Any]:
    found = {}
    for index in range(lib.deepum_machine_count()):
        machine = ffi.new("deepum_machine *")
        assert lib.deepum_machine_get(index, machine) == 0
        found[ffi.string(machine.name).decode()] = machine
    return found


def test_the_presets_are_there_and_can_be_found_by_name() -> None:
    machines = presets()
    assert list(machines) == [
        "v100-16gb",
        "v100-32gb",
        "rtx4090",
        "a100-40gb",
        "a100-40gb-g10",
        "a100-40gb-g10-ssd",
        "h100-80gb",
        "h200",
    ]
    for name, machine in machines.items():
        again = ffi.new("deepum_machine *")
        assert lib.deepum_machine_find(name.encode(), again) == 0
        assert ffi.buffer(again) == ffi.buffer(machine)
    unknown = ffi.new("deepum_machine *")
    assert lib.deepum_machine_find(b"tpu", unknown) == -1
    assert lib.deepum_machine_get(len(machines), unknown) == -1


def test_the_v100s_present_themselves_as_8_0_and_say_so() -> None:
    capabilities = {name: (m.presented_major, m.presented_minor) for name, m in presets().items()}
    a100s = dict.fromkeys(("a100-40gb", "a100-40gb-g10", "a100-40gb-g10-ssd"), (8, 0))
    assert capabilities == {
        "v100-16gb": (8, 0),
        "v100-32gb": (8, 0),
        "rtx4090": (8, 9),
        **a100s,
        "h100-80gb": (9, 0),
        "h200": (9, 0),
    }
    for name in ("v100-16gb", "v100-32gb"):
        assert "8.0" in ffi.string(presets()[name].description).decode()


def test_every_figure_of_every_preset_is_set_and_sound() -> None:
    for preset, machine in presets().items():
        for name, field in ffi.typeof("deepum_machine").fields:
            if field.type.kind == "primitive" and name not in (
                "presented_minor",
                "eviction_ns_per_block",
                *KIND,
                *HOST,
            ):
                assert getattr(machine, name) > 0, name
        assert all((getattr(machine, name) > 0) == (preset == "a100-40gb-g10-ssd") for name in HOST)
        assert machine.memory_bytes % (2 << 20) == 0
        for sustained in (
            machine.fp32_sustained,
            machine.tensor_sustained,
            machine.memory_sustained,
        ):
            assert 0.5 < sustained < 1
        # An eviction is at least its copy, unless it goes on beside the batch; a fault at least its
        # transfer. Where the figure to the host is that of prefetches, copies are faster.
        beside = preset.startswith("a100-40gb-g10")
        copies = 54.899 if preset == "h100-80gb" else machine.d2h_gbps
        assert (
            machine.eviction_ns_per_block == 0
            if beside
            else machine.eviction_ns_per_block >= (2 << 20) / copies
        )
        assert machine.fault_ns_per_byte >= 1 / machine.h2d_gbps
        assert machine.fault_ns_per_byte_no_prefetcher >= machine.fault_ns_per_byte


def test_g10s_machine_has_the_figures_of_its_simulator() -> None:
    machine = presets()["a100-40gb-g10"]
    assert machine.memory_bytes == 40 << 30
    assert (machine.h2d_gbps, machine.d2h_gbps) == (15.754, 15.754)
    assert machine.fault_batch_ns == 45e3
    assert machine.launch_queue == 1024


def test_g10s_machine_with_its_ssd_is_the_same_card() -> None:
    card, machine = presets()["a100-40gb-g10"], presets()["a100-40gb-g10-ssd"]
    for name, field in ffi.typeof("deepum_machine").fields:
        if field.type.kind == "primitive" and name not in HOST:
            assert getattr(machine, name) == getattr(card, name), name
    assert machine.host_memory_bytes == 128 << 30
    assert machine.disk_read_gbps == machine.disk_write_gbps == 3.2
    assert (machine.disk_read_latency_ns, machine.disk_write_latency_ns) == (12e3, 16e3)


def test_the_h100_has_what_was_measured_on_one() -> None:
    kept = ROOT / "benchmarks/results/acceptance-nvidia-h100-80gb-hbm3-20261127-022709.json"
    report = json.loads(kept.read_text(encoding="utf-8"))
    machine = presets()["h100-80gb"]
    assert ffi.string(machine.gpu_name).decode() == f"{report['gpu']} (simulated)"
    for name, value in report["sections"]["preset"].items():
        assert getattr(machine, name) == value, name
    # What comes is done first, then what leaves goes on alone: in seconds a GB each way.
    coming, leaving = machine.both_ways / machine.h2d_gbps, 1 / machine.d2h_gbps
    together = 2 / (coming + leaving - coming / machine.both_ways)
    links = report["sections"]["questions"]["links"]
    assert abs(together / links["both_prefetch_two_threads_gbps"] - 1) < 0.03
    gates = report["sections"]["questions"]["gates"]
    waits = (gates["gated"]["gpu_us"] - gates["plain"]["gpu_us"]) * 1e3
    assert abs(machine.value_wait_ns - waits) < 50
