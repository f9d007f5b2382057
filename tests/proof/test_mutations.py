"""The list of mutations fits the sources, and the programs notice one; the others are
run_mutations' to say: each takes a build.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from mutations import MUTATIONS, Mutation
from proof_running import ROOT
from run_mutations import Copy


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_its_text_is_in_the_sources_once(mutation: Mutation) -> None:
    for edit in mutation.edits():
        assert (ROOT / edit.file).read_text().count(edit.old) == 1
        assert edit.new != edit.old


def test_names_are_unique() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_programs_notice_a_discard_that_waits_for_nothing(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    mutation = next(
        mutation for mutation in MUTATIONS if mutation.name == "discard-waits-for-nothing"
    )
    assert copy.programs_until_failure(10, 0)[0] is None  # nothing is missing
    with copy.mutated(mutation):
        count, _ = copy.programs_until_failure(300, 0)
    assert count is not None
