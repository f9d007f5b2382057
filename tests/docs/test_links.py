"""Links between pages resolve, and so does every page that code, tests and scripts name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "news").glob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
    ]
)
FOLDERS = (
    ".ci",
    "benchmarks",
    "deepum",
    "docs",
    "examples",
    "kernel_hooks",
    "native",
    "news",
    "scripts",
    "tests",
)
SUFFIXES = {
    "",
    ".c",
    ".cpp",
    ".def",
    ".h",
    ".hpp",
    ".inc",
    ".jinja",
    ".md",
    ".py",
    ".pyi",
    ".supp",
    ".toml",
    ".txt",
}
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NAMED = re.compile(r"(?<![\w/.-])docs/[\w/.-]*\w\.(?:md|svg)\b")


def prose(page: Path) -> str:
    """The page without its code."""
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    return re.sub(r"`[^`\n]*`", lambda code: "`" + "x" * (len(code[0]) - 2) + "`", text)


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_of_a_page_resolve(page: Path) -> None:
    wrong = []
    for link in _LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert not wrong


def test_pages_that_are_named_exist() -> None:
    files = [
        *ROOT.glob("*.md"),
        *(
            file
            for folder in FOLDERS
            for file in (ROOT / folder).rglob("*")
            if file.suffix in SUFFIXES
        ),
    ]
    files = [
        file
        for file in files
        if file.is_file() and file != Path(__file__) and "__pycache__" not in file.parts
    ]
    wrong = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in files
        for name in _NAMED.findall(file.read_text(encoding="utf-8", errors="replace"))
        if not (ROOT / name).exists()
    }
    assert not wrong


def test_each_decision_record_is_listed_once_and_numbered() -> None:
    folder = ROOT / "docs" / "decisions"
    records = sorted(path.name for path in folder.glob("*.md") if path.name != "README.md")
    index = (folder / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\d{3})\]\(([^)]+)\) \|", index, re.MULTILINE)
    assert [name for _, name in listed] == records
    for number, (digits, name) in enumerate(listed, start=1):
        assert name.startswith(f"{digits}-") and int(digits) == number
        assert (folder / name).read_text(encoding="utf-8").startswith(f"# {digits} ")
