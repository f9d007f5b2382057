"""Calls that other threads have a session's loop make."""

from __future__ import annotations

import threading

import pytest

from deepum.daemon.inbox import Inbox, SessionOverError


def served(inbox: Inbox, woken: threading.Event) -> threading.Thread:
    """A loop that answers once."""

    def loop() -> None:
        woken.wait(10)
        inbox.answer()

    thread = threading.Thread(target=loop)
    thread.start()
    return thread


def test_a_call_is_made_in_the_loops_thread() -> None:
    woken = threading.Event()
    inbox = Inbox(woken.set)
    assert not inbox.waiting
    thread = served(inbox, woken)
    assert inbox.ask(threading.get_ident, 10) == thread.ident
    thread.join()


def test_what_a_call_raises_comes_to_who_asked() -> None:
    woken = threading.Event()
    inbox = Inbox(woken.set)
    thread = served(inbox, woken)
    with pytest.raises(ZeroDivisionError):
        inbox.ask(lambda: 1 / 0, 10)
    thread.join()


def test_a_call_that_waited_too_long_is_never_made() -> None:
    inbox, made = Inbox(lambda: None), []
    with pytest.raises(TimeoutError):
        inbox.ask(lambda: made.append(1), 0.01)
    inbox.answer()
    assert not made


def test_nobody_waits_for_a_session_that_is_over() -> None:
    woken = threading.Event()
    inbox = Inbox(woken.set)

    def end() -> None:
        woken.wait(10)
        inbox.close()

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(SessionOverError):
        inbox.ask(lambda: 1, 10)
    with pytest.raises(SessionOverError):
        inbox.ask(lambda: 1, 10)
    thread.join()


def test_nothing_is_woken_after_the_end() -> None:
    woken: list[int] = []
    inbox = Inbox(lambda: woken.append(1))
    inbox.wake()
    inbox.close()
    inbox.wake()
    assert woken == [1]
