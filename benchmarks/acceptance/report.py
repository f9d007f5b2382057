"""The results as a table for people: one line for each thing that was asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

SIMULATED = (
    "SIMULATED: times are virtual, those of calls are this machine's and mean nothing, losses are "
    "zeros."
)


def lines(document: dict[str, Any]) -> Iterator[str]:
    """Of a whole file's content, finished or not."""
    if document["simulated"]:
        yield SIMULATED
    card = f"{document['device']}: {document['gpu']}"
    yield f"{card}, driver {document['driver']}, {document['date']}"
    sections = document["sections"]
    for name, section in sections.items():
        for thing in ("error", "cut"):
            if section.get(thing):
                yield f"{name}: {section[thing]}"
    yield from _checks(sections.get("doctor", {}))
    yield from _questions(sections.get("questions", {}))
    if "preset" in sections:
        yield ""
        yield f"for um_model: {_value(sections['preset'])}"
    yield from _overhead(sections.get("overhead", {}))
    yield from _budgets(sections.get("budgets", {}))
    if "prediction" in sections:
        yield ""
        yield from prediction(sections["prediction"])
    yield from _correctness(sections.get("correctness", {}))


def _checks(doctor: dict[str, Any]) -> Iterator[str]:
    for check in doctor.get("checks", []):
        if check["level"] != "ok":
            yield f"doctor: {check['level']} {check['name']}: {check['found']}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} {_value(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return (
            f"[{len(value)}: {_value(value[0])} ... {_value(value[-1])}]"
            if len(value) > 2
            else f"[{', '.join(map(_value, value))}]"
        )
    return f"{value:g}" if isinstance(value, float) else str(value)


def _questions(questions: dict[str, Any]) -> Iterator[str]:
    if questions:
        yield ""
    for name, findings in questions.items():
        yield f"{name} ({findings.get('seconds', '?')} s)"
        for key, value in findings.items():
            if key != "seconds":
                yield f"    {key:<40} {_value(value)}"


def _overhead(overhead: dict[str, Any]) -> Iterator[str]:
    compared = overhead.get("compared", [])
    if compared:
        yield ""
        yield f"{'all fits':<10}{'plain ms':>10}{'deepum ms':>11}{'overhead':>10}  same bits"
    for row in compared:
        if "error" in row:
            yield f"{row['model']:<10}{row['error']}"
            continue
        same = "yes" if row["same_bits"] else "NO"
        yield (
            f"{row['model']:<10}{row['plain_ms']:>10.2f}{row['deepum_ms']:>11.2f}"
            f"{row['overhead']:>10.1%}  {same}"
        )


def _budgets(budgets: dict[str, Any]) -> Iterator[str]:
    rows = budgets.get("rows", [])
    if rows:
        yield ""
        yield (
            f"{'budget':<10}{'':<30}{'share':>6}{'step ms':>10}{'x bound':>9}{'not free':>11}"
            f"{'over':>9}  same bits"
        )
    for row in sorted(rows, key=lambda row: (row["model"], row.get("share", 100), row["what"])):
        share = f"{row['share']} %" if "share" in row else "-"
        start = f"{row['model']:<10}{row['what']:<30}{share:>6}"
        if "error" in row:
            yield f"{start}  {row['error']}"
            continue
        statistics = row.get("statistics", {})
        # Of the driver's free memory where that was watched, else as believed: neither tells what
        # was resident (docs/statistics.md).
        used = (
            row.get("peak_used_bytes")
            or statistics.get("peak_resident_bytes")
            or row["peak_allocated_bytes"]
        )
        over = statistics.get("budget_overshoot_bytes")
        same = {True: "yes", False: "NO", None: ""}[row.get("same_bits")]
        bound = f"{row['to_bound']:.2f}" if "to_bound" in row else ""
        beyond = "" if over is None else f"{over / 2**20:.0f} MiB"
        yield f"{start}{row['step_ms']:>10.2f}{bound:>9}{used / 2**20:>7.0f} MiB{beyond:>9}  {same}"
    if left := budgets.get("left_out"):
        yield f"left out for want of time: {', '.join(left)}"


def prediction(figures: dict[str, Any]) -> Iterator[str]:
    """Of acceptance.predict. The plain step is what the kernels' times were made from: it says
    nothing.
    """
    rows = figures.get("rows", [])
    if rows:
        yield f"{'predicted':<10}{'':<30}{'share':>6}{'measured':>11}{'predicted':>11}{'ratio':>8}"
    for model, known in figures.get("models", {}).items():
        yield f"{model:<10}{'plain':<30}{'-':>6}{known['plain_ms']:>8.2f} ms{'given':>11}"
        for row in (row for row in rows if row["model"] == model):
            off = "  beyond" if abs(row["ratio"] - 1) > figures["within"] else ""
            times = f"{row['measured_ms']:>8.2f} ms{row['predicted_ms']:>8.2f} ms"
            yield f"{model:<10}{row['what']:<30}{row['share']:>4} %{times}{row['ratio']:>8.3f}{off}"
        for row in (row for row in figures.get("speed_ups", []) if row["model"] == model):
            times = f"{row['measured']:>9.2f} x{row['predicted']:>9.2f} x"
            yield (
                f"{model:<10}{'on-demand over deepum':<30}{row['share']:>4} "
                f"%{times}{row['predicted'] / row['measured']:>8.3f}"
            )
    if figures.get("count"):
        differences = (
            f"largest difference {figures['largest']:.1%}, mean {figures['mean']:.1%}, of "
            f"{figures['count']} step times"
        )
        yield f"{differences}; the aim is {figures['within']:.0%}"
    for model, why in figures.get("left_out", {}).items():
        yield f"not predicted: {model}: {why}"


def _correctness(correctness: dict[str, Any]) -> Iterator[str]:
    programs = correctness.get("programs", {})
    if programs:
        yield ""
    if "right" in programs:
        right = ", ".join(f"{count} ({what})" for what, count in programs["right"].items())
        yield f"random programs right: {right}; wrong: {len(programs['wrong'])}"
    for wrong in programs.get("wrong", []):
        yield (
            f"    WRONG: {wrong['what']}, batch {wrong['batch']}, seed {wrong['seed']}: "
            f"{wrong['said'].strip()[-160:]}"
        )
    if "error" in programs:
        yield f"random programs: {programs['error']}"
    training = correctness.get("training", [])
    if training:
        bad = [f"{row['model']} {row['what']}" for row in training if not row["same_bits"]]
        yield f"training to the bit: {len(training) - len(bad)} of {len(training)}" + (
            f"; not: {', '.join(bad)}" if bad else ""
        )
