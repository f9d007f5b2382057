"""The list of mutations fits the sources; that the programs notice them is run_mutations' to say, since each takes a build."""

from __future__ import annotations

import pytest
from mutations import MUTATIONS, Mutation
from proof_running import ROOT


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_its_text_is_in_the_sources_once(mutation: Mutation) -> None:
    for edit in mutation.edits():
        assert (ROOT / edit.file).read_text().count(edit.old) == 1
        assert edit.new != edit.old


def test_names_are_unique() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
