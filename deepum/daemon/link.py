"""How fast the link between the host and the GPU is, for plans: of the simulated machine, or by the
PCI Express link of the card.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deepum.host import ROOT, read
from deepum.machines import Named, machines

_DEVICES = "sys/bus/pci/devices"
_NVIDIA = "0x10de"
_DISPLAY = "0x03"  # the class of VGA and 3D controllers
# Of the raw rate, what copies of pinned memory reach: headers and acknowledgements take the rest.
_REACHED = 0.8
_DEFAULT_GBPS = 12.0  # third generation, 16 lanes


@dataclass(frozen=True)
class LinkRates:
    """GB/s (10^9) to the GPU and to the host. warning: why they are a guess, if they are one."""

    in_gbps: float
    out_gbps: float
    warning: str | None = None


def link_rates(environment: Mapping[str, str], root: Path = ROOT) -> LinkRates:
    """environment: the session's DEEPUM_* variables, in which the launcher names a simulated
    machine.
    """
    if name := environment.get("DEEPUM_SIM_MACHINE"):
        return _simulated(name, environment.get("DEEPUM_SIM_FIGURES", ""))
    raw = [rate for path in _cards(root) if (rate := _raw_gbps(path)) is not None]
    if not raw:
        return _guess("no card's PCI Express link is known")
    rate = _REACHED * min(raw)
    return LinkRates(rate, rate)


def _guess(why: str) -> LinkRates:
    return LinkRates(
        _DEFAULT_GBPS,
        _DEFAULT_GBPS,
        f"plans are made for a link of {_DEFAULT_GBPS:g} GB/s: {why}",
    )


def _simulated(name: str, figures: str) -> LinkRates:
    if name not in {known.name for known in machines()}:
        return _guess("the simulated machine is unknown")
    native = Named(name, {}).native()
    rates = {"h2d_gbps": float(native.h2d_gbps), "d2h_gbps": float(native.d2h_gbps)}
    for figure, value in re.findall(r"(\w+)=([0-9.e+-]+)", figures):
        if figure in rates:
            try:
                rates[figure] = float(value)
            except ValueError:
                return _guess("the simulated machine's figures are no numbers")
    if min(rates.values()) <= 0:
        return _guess("the simulated machine's figures are no rates")
    return LinkRates(rates["h2d_gbps"], rates["d2h_gbps"])


def _cards(root: Path) -> list[Path]:
    try:
        devices = sorted((root / _DEVICES).iterdir())
    except OSError:
        return []
    return [
        path
        for path in devices
        if read("vendor", path).strip() == _NVIDIA and read("class", path).startswith(_DISPLAY)
    ]


def _raw_gbps(card: Path) -> float | None:
    """Of the link as it runs now, by its rate of transfers, their coding and its lanes (PCI Express
    Base Specification, Physical Layer); GB/s each way.
    """
    speed = re.match(r"([\d.]+) GT/s", read("current_link_speed", card))
    lanes = re.match(r"\d+", read("current_link_width", card))
    if speed is None or lanes is None or int(lanes[0]) == 0:
        return None
    transfers = float(speed[1])
    coding = 8 / 10 if transfers < 8 else 128 / 130 if transfers < 64 else 236 / 256
    return transfers * coding * int(lanes[0]) / 8
