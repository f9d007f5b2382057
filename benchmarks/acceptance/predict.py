"""`python -m acceptance.predict RESULT.json`: step times as the unified memory model has them
beside those that were measured.

Writes what it finds into the file, as `prediction`. Exit codes: 0 all within 15 %; 1 not all, or
none could be predicted; 2 unusable files.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from acceptance import traces
from acceptance.prediction import Training, later_ms
from acceptance.preset import machine
from acceptance.report import prediction as lines
from acceptance.trainings import DEEPUM, EMULATED, PLAIN
from deepum.errors import DeepumError, UsageError
from deepum.machines import Named, named, of_figures

WITHIN = 0.15  # of what was measured: the aim


def predict(results: Path, document: dict[str, Any], on: Named) -> Iterator[dict[str, Any]]:
    """What is known after each model: `models`, their plain steps and how the kernels' times were
    made; `rows`; `speed_ups` of deepum over the emulated on-demand; `largest` and `mean` difference
    from what was measured, as shares, over `count` rows; `left_out`, and why.
    """
    budgets = document["sections"].get("budgets", {})
    found: dict[str, Any] = {"models": {}, "rows": [], "left_out": {}, "within": WITHIN}
    rows = [row for row in budgets.get("rows", []) if "error" not in row]
    for model, kept in budgets.get("traces", {}).items():
        plain = next((row for row in rows if row["model"] == model and row["what"] == PLAIN), None)
        if plain is None:
            found["left_out"][model] = "plain training was not measured"
            continue
        try:
            training = Training(
                model, traces.read(results, model), kept["budget_bytes"], len(plain["steps_ms"]), on
            )
            ms = later_ms(plain["steps_ms"])
            unscaled = training.unlimited_ms(1.0)
            training.fit(ms)
            found["models"][model] = {
                "plain_ms": round(ms, 4),
                "kernels_factor": round(training.factor, 4),
                "without_factor_ms": round(unscaled, 4),
            }
            found["rows"] += [
                _row(training, row)
                for row in rows
                if row["model"] == model and "share" in row and "settings" in row
            ]
        except KeyError:
            found["left_out"][model] = f"no trace in {traces.beside(results).name}"
        except (OSError, ValueError) as error:
            found["left_out"][model] = str(error)
        yield found | _summary(found["rows"])


def _row(training: Training, row: dict[str, Any]) -> dict[str, Any]:
    predicted = training.under(row["settings"], row["budget_bytes"], row["what"] == EMULATED)
    measured = later_ms(row["steps_ms"])
    return {
        **{name: row[name] for name in ("model", "what", "share", "budget_bytes")},
        "measured_ms": round(measured, 4),
        "predicted_ms": round(predicted.step_ms, 4),
        "ratio": round(predicted.step_ms / measured, 4),
        "measured_bytes_evicted": row.get("statistics", {}).get("bytes_evicted_asked"),
        "predicted_bytes_evicted": predicted.bytes_evicted,
        "predicted_bytes_h2d": predicted.bytes_h2d,
        "predicted_bytes_d2h": predicted.bytes_d2h,
    }


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    cases = {(row["model"], row["share"], row["what"]): row for row in rows}
    speed_ups = []
    for (model, share, what), row in cases.items():
        if what == DEEPUM and (paged := cases.get((model, share, EMULATED))) is not None:
            times = {
                name: round(paged[f"{name}_ms"] / row[f"{name}_ms"], 4)
                for name in ("measured", "predicted")
            }
            speed_ups.append({"model": model, "share": share, **times})
    return {"speed_ups": speed_ups, **_differences([abs(row["ratio"] - 1) for row in rows])}


def _differences(off: list[float]) -> dict[str, Any]:
    return (
        {"count": len(off), "largest": round(max(off), 4), "mean": round(sum(off) / len(off), 4)}
        if off
        else {"count": 0}
    )


def _read(path: Path) -> dict[str, Any]:
    """Raises UsageError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}; name a file that scripts/gpu_acceptance wrote"
        ) from None
    except ValueError:
        document = None
    if (
        not isinstance(document, dict)
        or document.get("version") != 1
        or not isinstance(document.get("sections"), dict)
    ):
        raise UsageError(f"{path}: holds no results; name a file that scripts/gpu_acceptance wrote")
    return document


def _write(path: Path, text: str) -> None:
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise DeepumError(f"{path}: {error.strerror}; name a file that can be written") from None


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="acceptance.predict",
        description="Predicted against measured step times; docs/acceptance.md.",
    )
    parser.add_argument(
        "results",
        type=Path,
        help="a file that scripts/gpu_acceptance wrote; its traces are beside it",
    )
    parser.add_argument(
        "--machine", help="another than the measured one, by name or file; nothing is written then"
    )
    parser.add_argument(
        "--save-machine",
        type=Path,
        metavar="FILE",
        help="write the measured machine to this file, for sim:FILE",
    )
    given = parser.parse_args()
    try:
        sys.exit(_run(given))
    except DeepumError as error:
        print(error.line, file=sys.stderr)
        sys.exit(error.exit_code)


def _run(given: argparse.Namespace) -> int:
    document = _read(given.results)
    content: dict[str, Any] | None = None
    if given.machine is None or given.save_machine is not None:
        try:
            content = machine(document)
        except (ValueError, KeyError) as error:
            raise UsageError(f"{given.results}: {error}") from None
    if given.save_machine is not None:
        _write(given.save_machine, json.dumps(content, indent=1) + "\n")
    try:
        on = (
            named(given.machine)
            if given.machine is not None
            else of_figures(str(given.results), content)
        )
    except ValueError as error:
        raise UsageError(f"machine '{given.machine}': {error}; see `deepum machines`") from None
    found: dict[str, Any] = {"count": 0}
    for found in predict(given.results, document, on):
        if given.machine is None:
            document["sections"]["prediction"] = {"machine": content, **found}
            _write(given.results, json.dumps(document, indent=1) + "\n")
    if not found["count"]:
        print("\n".join(lines(found)))
        raise DeepumError(
            (
                f"{given.results}: nothing to predict; run scripts/gpu_acceptance with the "
                f"section budgets"
            ),
            1,
        )
    print("\n".join(lines(found)))
    return int(found["largest"] > WITHIN)


if __name__ == "__main__":
    main()
