"""Pages as a browser shows them: Chromium without a window, on pages served from this process."""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest

# Desktop and phone; width and height in CSS pixels.
SIZES = ((1280, 900), (390, 844))

# Looks at each page in a frame of each size, since windows are 500 pixels wide at least, and leaves
# what it saw in the document.
_LOOK = """<!doctype html><title>looking</title><pre id="seen"></pre><script>
const pages = PAGES, sizes = SIZES, seen = [], measure = MEASURE;
async function look() {
  for (const page of pages) for (const [width, height] of sizes) {
    const frame = document.createElement("iframe");
    frame.width = width; frame.height = height;
    const loaded = new Promise(resolve => { frame.onload = resolve; });
    frame.src = page;
    document.body.append(frame);
    await loaded;
    await new Promise(resolve => setTimeout(resolve, SETTLES));
    const root = frame.contentDocument.documentElement;
    const outside = [...frame.contentDocument.querySelectorAll("svg[viewBox] text")].filter(text => {
      const box = text.getBBox(), all = text.ownerSVGElement.viewBox.baseVal;
      return box.x < 0 || box.y < 0 || box.x + box.width > all.width || box.y + box.height > all.height;
    }).map(text => text.textContent);
    seen.push({page, width, title: frame.contentDocument.title, outside,
               wider: root.scrollWidth - root.clientWidth, measured: measure(frame.contentDocument)});
    frame.remove();
  }
  document.getElementById("seen").textContent = JSON.stringify(seen);
}
look();
</script>"""


@dataclass(frozen=True)
class Seen:
    """What a browser saw: of each page at each size `page`, `width`, `title`, by how many pixels it
    is `wider` than its window, texts of drawings that are `outside` of them, and what was `measured`;
    the lines of the console; and what was asked for and is not there.
    """

    pages: list[dict[str, Any]]
    console: list[str]
    missing: list[str]


class _Files(http.server.SimpleHTTPRequestHandler):
    """Serves the files of a folder, and keeps the paths of those that are not there."""

    def __init__(self, *arguments: Any, missing: list[str], **more: Any) -> None:
        self.missing = missing
        super().__init__(*arguments, **more)

    def log_message(self, *_arguments: object) -> None:
        pass

    def send_error(self, *arguments: Any, **more: Any) -> None:
        self.missing.append(self.path)
        super().send_error(*arguments, **more)


class Browser:
    """Looks at pages of one folder. The test is skipped where there is neither Chromium nor
    Chrome.
    """

    def __init__(self, folder: Path) -> None:
        names = ("chromium", "chromium-browser", "google-chrome")
        found = next((path for name in names if (path := shutil.which(name))), None)
        if found is None:
            pytest.skip("needs Chromium")
        self.program = found
        self.folder = folder

    def visit(self, pages: list[str], measure: str = "page => null", settles_ms: int = 0) -> Seen:
        """What each page looks like at each of SIZES, so long after it was loaded. `measure`: a
        function of JavaScript, which is given the page's document.
        """
        text = _LOOK.replace("PAGES", json.dumps(pages)).replace("SIZES", json.dumps(SIZES))
        text = text.replace("MEASURE", measure).replace("SETTLES", str(settles_ms))
        look = self.folder / "look.html"
        look.write_text(text, encoding="utf-8")
        missing: list[str] = []
        handler = functools.partial(_Files, directory=str(self.folder), missing=missing)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            try:
                result = self._run(f"http://127.0.0.1:{server.server_address[1]}/look.html")
            finally:
                server.shutdown()
                look.unlink()
        seen = re.search(r'<pre id="seen">(.*?)</pre>', result.stdout, re.DOTALL)
        assert seen is not None and seen[1], result.stderr[-2000:]
        console = [line for line in result.stderr.splitlines() if ":CONSOLE" in line]
        # A browser asks for an icon of each host.
        absent = [path for path in missing if path != "/favicon.ico"]
        return Seen(json.loads(unescape(seen[1])), console, absent)

    def _run(self, address: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as profile:
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
            options += [f"--user-data-dir={profile}", "--window-size=1400,1000"]
            return subprocess.run(
                [self.program, *options, "--virtual-time-budget=60000", "--dump-dom", address],
                capture_output=True,
                text=True,
                timeout=300,
                check=True,
            )
