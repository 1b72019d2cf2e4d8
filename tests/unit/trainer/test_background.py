"""Work beside the training: one piece at a time, nothing of it lost."""

from __future__ import annotations

import threading

import pytest

from trainer.background import Background


def test_pieces_run_one_after_the_other_and_all_results_are_kept() -> None:
    gate, order = threading.Event(), list[int]()
    background: Background[int] = Background("test")

    def first() -> int:
        gate.wait(10)
        order.append(1)
        return 1

    def second() -> int:
        order.append(2)
        return 2

    background.start(first)
    assert background.collect() == [], "it goes on while the caller does something else"
    gate.set()
    background.start(second)
    background.wait()
    assert (order, background.collect(), background.collect()) == ([1, 2], [1, 2], [])


def test_failure_is_raised_to_who_collects_after_what_was_done_before() -> None:
    background: Background[int] = Background("test")
    background.start(lambda: 1)
    background.start(lambda: 1 // 0)
    background.wait()
    assert background.collect() == [1]
    with pytest.raises(ZeroDivisionError):
        background.collect()
    assert background.collect() == []
