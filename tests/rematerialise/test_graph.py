"""What a content knows of the operations that read it."""

from __future__ import annotations

from deepum.rematerialise.graph import Content, Operation


def reading(content: Content) -> Content:
    """What an operation makes of it."""
    made = Content(1)
    Operation((content,), (made,), cost=1.0)
    return made


def test_readers_are_in_the_order_in_which_they_were_recorded() -> None:
    content = Content(1)
    made = [reading(content) for _ in range(20)]
    assert [one.producer for one in made] == list(content.readers)
    del made[3:17]
    assert [one.producer for one in made] == list(content.readers)


def test_a_reader_is_known_as_long_as_its_results_can_be_asked_for() -> None:
    content = Content(1)
    assert not content.readers
    made = reading(content)
    assert content.readers
    later = reading(made)
    del made
    assert content.readers, "what it made is read"
    del later
    assert not content.readers


def test_an_operation_that_reads_a_content_twice_is_one_reader() -> None:
    content, made = Content(1), Content(1)
    operation = Operation((content, content), (made,), cost=1.0)
    assert list(content.readers) == [operation]


def test_readers_that_are_gone_take_no_memory() -> None:
    content = Content(1)
    made = [reading(content) for _ in range(5)]
    for _ in range(1000):
        reading(content)
    assert content.readers.kept < 20
    assert list(content.readers) == [one.producer for one in made]
