"""What dropped contents are made of, which has to stay or be computable itself."""

from __future__ import annotations

from collections.abc import Collection

from deepum.recomputation.closure import Content
from deepum.recomputation.contents import Storage


class Dependence:
    """Contents that have to be there, by the dropped storages that need them, and back."""

    def __init__(self) -> None:
        self._needs: dict[Storage, frozenset[Content]] = {}
        self._needed_by: dict[Content, set[Storage]] = {}

    def needed_by(self, content: Content) -> Collection[Storage]:
        """Dropped storages that could not be computed, as things are, without that content."""
        return self._needed_by.get(content, ())

    def add(self, storage: Storage, needs: frozenset[Content]) -> None:
        """A dropped storage needs these, and nothing else any more."""
        self.discard(storage)
        self._needs[storage] = needs
        for needed in needs:
            self._needed_by.setdefault(needed, set()).add(storage)

    def discard(self, storage: Storage) -> None:
        """A storage is not dropped any more."""
        for needed in self._needs.pop(storage, ()):
            self._needed_by[needed].discard(storage)
            if not self._needed_by[needed]:
                del self._needed_by[needed]
