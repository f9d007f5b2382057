"""What the answers say of the machine in the terms of the unified memory model
(native/um_model/machine.hpp), for a preset made of them.
"""

from __future__ import annotations

from typing import Any

_SIMULATED = " (simulated)"  # behind a card's name


def preset(questions: dict[str, Any]) -> dict[str, float | int | None]:
    """Figures by the names of `deepum.machines.Machine`; None for what was not answered. Rates are
    those of prefetches, which is what the model's link is for; the fault batch is the start of the
    line through sweeps that a batch holds.
    """

    def get(*path: str) -> Any:
        at: Any = questions
        for name in path:
            at = at.get(name) if isinstance(at, dict) else None
        return at

    # 0: no call blocks its caller; 1: prefetches do; 2: discards as well.
    returns = [
        get("order", what, "returns_before_the_event") for what in ("to_host", "to_gpu", "discard")
    ]
    blocking = (
        2 if returns[2] is False else 1 if False in returns else None if None in returns[:2] else 0
    )
    slope, base, launch = (
        get("faults", "swept_fit", "us_per_kib"),
        get("faults", "swept_fit", "base_us"),
        get("launches", "launch_host_us"),
    )
    return {
        "h2d_gbps": get("links", "one_way", "to_gpu_prefetch"),
        "d2h_gbps": get("links", "one_way", "to_host_prefetch"),
        "fault_batch_ns": None if base is None else round(base * 1e3),
        "fault_ns_per_byte": None if slope is None else round(slope * 1e3 / 1024, 5),
        "launch_ns": None if launch is None else round(launch * 1e3),
        "launch_queue": get("launches", "launch_queue"),
        "blocking_calls": blocking,
    }


def machine(document: dict[str, Any]) -> dict[str, Any]:
    """A machine's file (docs/simulate.md, Machines) of a whole file of results. What was not
    measured is as with the preset of that card, else as with the one whose link is most like its
    own. Raises ValueError where the link was not measured.
    """
    # The native core, which may have to be built first.
    from deepum.machines import Machine, machines

    measured = dict(document["sections"].get("preset", {}))
    if document["simulated"]:
        # What a call takes is this host's own time there, while the model has its virtual one.
        measured["launch_ns"] = None
    h2d = measured.get("h2d_gbps")
    if not h2d or not measured.get("d2h_gbps"):
        raise ValueError(
            "the link was not measured; run scripts/gpu_acceptance with the section questions"
        )
    # Those of another's simulator are no cards.
    cards = [known for known in machines() if known.gpu_name.endswith(_SIMULATED)]
    card = document["gpu"].removesuffix(_SIMULATED)
    like = min(
        cards,
        key=lambda known: (
            known.gpu_name.removesuffix(_SIMULATED) != card,
            abs(known.h2d_gbps - h2d),
        ),
    )
    figures = {
        name: value
        for name, value in measured.items()
        if value is not None and name in Machine.__dataclass_fields__
    }
    return {
        "like": like.name,
        "description": f"as measured, {document['gpu']}, {document['date']}",
        "memory_bytes": document["free_bytes"],
        **figures,
    }
