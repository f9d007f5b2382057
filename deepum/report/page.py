"""The page: one HTML file with its charts and the code that draws them. Nothing is fetched: its own
policy forbids it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from deepum import __version__
from deepum.errors import DeepumError
from deepum.report.answers import Answer
from deepum.report.charts import Spec
from deepum.sizes import size

_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:"
)
_STYLE = """
html { color-scheme: light; background: #fff; }
body { font: 15px/1.45 sans-serif; max-width: 1280px; margin: 2em auto; padding: 0 1.5em;
  color: #222; }
h1 { font-size: 1.5em; }
.subtitle { color: #555; margin-top: -.6em; }
h2 { font-size: 1.2em; margin-top: 2.2em; border-bottom: 1px solid #ccc; }
h3 { font-size: 1em; margin-top: 1.6em; }
table { border-collapse: collapse; }
h1, h2, h3, li, p { overflow-wrap: anywhere; }
th, td { padding: 2px 12px 2px 0; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; }
td:nth-child(2):last-child { white-space: normal; }
th { border-bottom: 1px solid #999; font-weight: normal; color: #555; }
pre { background: #f6f6f6; padding: .6em 1em; white-space: pre-wrap; overflow-wrap: anywhere; }
p { max-width: 56em; }
.chart, .table { overflow-x: auto; max-width: 100%; }
.answers { display: grid; grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); gap: 12px;
  margin: 1em 0; }
.answers section { border: 1px solid #ccc; border-left: 4px solid #2f6fb7; padding: .6em .9em; }
.answers strong { display: block; font-size: 1.25em; margin: .15em 0; overflow-wrap: anywhere; }
.answers p { margin: .2em 0; font-size: .9em; color: #444; }
.answers .question { margin: 0; color: #666; }
nav ul, .outcome { margin: .3em 0; padding-left: 1.3em; }
nav { margin: 1em 0; }
nav ul { columns: 30em; }
@media (max-width: 600px) {
  body { margin: 1em auto; padding: 0 .9em; }
  h1 { font-size: 1.25em; }
  .answers { gap: 8px; }
}
footer { margin-top: 3em; color: #777; font-size: .9em; }
"""
_SCRIPT = """
const actions = {export: true, source: false, compiled: false, editor: false};
const charts = JSON.parse(document.getElementById('charts').textContent);
for (const [place, spec] of Object.entries(charts))
  vegaEmbed('#' + place, spec, {mode: 'vega-lite', renderer: 'canvas', actions}).catch(error => {
    document.getElementById(place).textContent = 'The chart cannot be drawn: ' + error;
  });
"""


_MOST_OUTCOMES = 6  # more are shown on demand


def _card(answer: Answer) -> str:
    details = "".join(f"<p>{escape(line)}</p>" for line in answer.details)
    return (
        f'<section><p class="question">{escape(answer.question)}</p>'
        f"<strong>{escape(answer.answer)}</strong>{details}</section>"
    )


def library() -> Any:
    """The package that draws, vl_convert. Raises DeepumError when it is not installed."""
    try:
        import vl_convert
    except ImportError:
        raise DeepumError(
            "vl-convert: is missing, and draws the charts; install it with `pip install "
            "deepum[report]`"
        ) from None
    return vl_convert


def picture(spec: Spec, kind: str) -> bytes:
    """A chart as a picture; `kind`: png or svg. Raises DeepumError."""
    drawing = library()
    text = json.dumps(spec)
    return (
        bytes(drawing.vegalite_to_png(text, scale=2))
        if kind == "png"
        else str(drawing.vegalite_to_svg(text)).encode()
    )


@dataclass
class Page:
    """Collects sections; `html` gives the whole."""

    title: str
    _subtitle: str = ""
    _body: list[str] = field(default_factory=list)
    _answers: list[Answer] = field(default_factory=list)
    _outcome: list[str] = field(default_factory=list)
    _sections: list[tuple[str, str]] = field(default_factory=list)
    _charts: dict[str, Spec] = field(default_factory=dict)

    def heading(self, text: str, level: int = 2) -> None:
        """A heading, of level 2 or 3."""
        place = f"section-{len(self._sections)}"
        if level == 2:
            self._sections.append((place, text))
        named = f' id="{place}"' if level == 2 else ""
        self._body.append(f"<h{level}{named}>{escape(text)}</h{level}>")

    def answers(self, answers: Sequence[Answer]) -> None:
        """What a reader asks first, at the page's head."""
        self._answers += answers

    def outcome(self, line: str) -> None:
        """A line of what comes first on the page: how it went."""
        self._outcome.append(line)

    def subtitle(self, text: str) -> None:
        """What the page is of, below its title."""
        self._subtitle = text

    def text(self, text: str) -> None:
        """A paragraph."""
        self._body.append(f"<p>{escape(text)}</p>")

    def verbatim(self, lines: Sequence[str]) -> None:
        """Lines as they are."""
        self._body.append(f"<pre>{escape(chr(10).join(lines))}</pre>")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table, its first column names."""
        cells = [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
        heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        self._body.append(
            f'<div class="table"><table><tr>{heads}</tr>{"".join(cells)}</table></div>'
        )

    def chart(self, spec: Spec) -> None:
        """A chart."""
        place = f"chart-{len(self._charts)}"
        self._charts[place] = spec
        self._body.append(f'<div class="chart" id="{place}"></div>')

    def _first(self) -> str:
        """The outcome, and where to find the rest."""
        lines = "".join(f"<li>{escape(line)}</li>" for line in self._outcome)
        outcomes = f'<ul class="outcome">{lines}</ul>\n' if lines else ""
        links = "".join(
            f'<li><a href="#{place}">{escape(text)}</a></li>' for place, text in self._sections
        )
        answers = "".join(map(_card, self._answers))
        if len(self._outcome) > _MOST_OUTCOMES:
            outcomes = (
                f"<details><summary>How each of {len(self._outcome)} went</summary>"
                f"{outcomes}</details>\n"
            )
        return (
            (f'<p class="subtitle">{escape(self._subtitle)}</p>\n' if self._subtitle else "")
            + (f'<div class="answers">{answers}</div>\n' if answers else "")
            + outcomes
            + (f"<nav>Contents<ul>{links}</ul></nav>\n" if len(self._sections) > 1 else "")
        )

    def html(self) -> str:
        """The file. Raises DeepumError when the code that draws is not there."""
        code = str(library().javascript_bundle()).replace("</script", "<\\/script")
        # Without "<" nothing in a name can end the element that it is in.
        charts = json.dumps(self._charts, separators=(",", ":")).replace("<", "\\u003c")
        return (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><meta '
            f'http-equiv="Content-Security-Policy" content="{_POLICY}">'
            f"<title>{escape(self.title)}</title><style>{_STYLE}</style></head><body><h1>{escape(self.title)}</h1>\n"
            + self._first()
            + "\n".join(self._body)
            + f"\n<footer>deepum {escape(__version__)}</footer>"
            f'<script type="application/json" id="charts">{charts}</script>'
            f"<script>{code}</script><script>{_SCRIPT}</script></body></html>\n"
        )


def _ratio(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def figures(simulation: Mapping[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows of a simulation's table: those of `deepum simulate`."""
    head = (
        "policy",
        "ms a step",
        "faults",
        "in",
        "out",
        "of unlimited",
        "over on-demand",
        "of bound",
        "of bound (UM)",
    )
    rows: list[tuple[str, ...]] = []
    for name, policy in simulation["policies"].items():
        if "does_not_fit" in policy:
            rows.append((name, "does not fit", *["-"] * (len(head) - 2)))
            continue
        counts = policy["a_step"]
        rows.append(
            (
                name,
                f"{policy['step_ms']:.1f}",
                f"{counts.get('faults', 0):.0f}",
                size(counts.get("bytes_h2d")),
                size(counts.get("bytes_d2h")),
                _ratio(policy["of_unlimited"], 3),
                _ratio(policy["speed_up_over_on_demand"], 2),
                _ratio(policy.get("of_bound"), 3),
                _ratio(policy.get("of_kept_bound"), 3),
            )
        )
    return head, rows
