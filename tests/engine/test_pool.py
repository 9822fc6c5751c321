"""Tasks over threads: every result once, and nothing left running after an error."""

import threading
import time

import pytest

from parity.engine.pool import Pool
from parity.engine.workers import Limits


def run(work, tasks, jobs=2):
    return list(Pool(jobs, Limits(), work).run(tasks))


def test_every_task_gives_its_result_once():
    assert sorted(run(lambda workers, task, say: task * task, range(300))) == [
        task * task for task in range(300)
    ]


def test_no_task_gives_nothing():
    assert run(lambda workers, task, say: task, []) == []


def test_what_is_said_before_comes_before_its_result():
    def work(workers, task, say):
        say(f"{task} goes on")
        return f"{task} is done"

    said = run(work, ["a", "b", "c"], jobs=1)
    assert said == [f"{task} {what}" for task in "abc" for what in ("goes on", "is done")]


def test_tasks_run_side_by_side_each_thread_with_workers_of_its_own():
    together = threading.Barrier(2, timeout=10)

    def work(workers, task, say):
        together.wait()
        return workers

    first, second = run(work, [0, 1])
    assert first is not second
    assert not first._folder.exists()


def test_tasks_are_taken_only_when_a_thread_is_free():
    taken = []

    def tasks():
        for task in range(1000):
            taken.append(task)
            yield task

    results = Pool(2, Limits(), lambda workers, task, say: task).run(tasks())
    next(results)
    time.sleep(0.2)
    assert len(taken) < 100
    results.close()


def test_an_error_ends_all_and_is_raised_where_results_are_read():
    def work(workers, task, say):
        if task == 3:
            raise ZeroDivisionError("our own")
        return task

    before = threading.active_count()
    results = Pool(1, Limits(), work).run(range(1000))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError, match="our own"):
        next(results)
    assert threading.active_count() == before


def test_closing_stops_the_workers_and_waits_for_threads_that_have_more_to_say():
    def work(workers, task, say):
        for _ in range(200):
            say(task)
        return task

    before = threading.active_count()
    results = Pool(2, Limits(), work).run(range(1000))
    next(results)
    results.close()
    assert threading.active_count() == before
