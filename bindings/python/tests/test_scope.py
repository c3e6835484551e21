"""``Scope``: when its block ends, all of its tasks have run."""

from __future__ import annotations

import os
import threading

import paceline
from support import Case, told


class Scopes(Case):
    def test_all_have_run_when_the_block_ends(self) -> None:
        for settings in ({}, {"threads": 0}, {"lane_capacity": 2}):
            with paceline.Pool(**settings) as pool:
                done: list[int] = []
                with pool.scope() as scope:
                    for number in range(100):
                        scope.post(done.append, number)
                    scope.post(lambda: [scope.post(done.append, each) for each in range(100, 200)])
                self.assertEqual(sorted(done), list(range(200)))
                with self.assertRaisesRegex(paceline.ShutDownError, "the scope has ended"):
                    scope.post(done.append, 0)

    def test_inside_a_task_of_a_pool_of_one_thread(self) -> None:
        with paceline.Pool(1) as pool:

            def whole(depth: int) -> int:
                parts = [0] * 4

                def part(index: int) -> None:
                    parts[index] = whole(depth - 1) if depth else 1

                with pool.scope() as scope:
                    for index in range(4):
                        scope.post(part, index)
                return sum(parts)

            self.assertEqual(pool.submit(whole, 3).result(60), 256)

    def test_failures(self) -> None:
        seen: list[BaseException] = []
        with paceline.Pool(2, on_unhandled=seen.append) as pool:

            def fail(what: str) -> None:
                raise KeyError(what)

            with self.assertRaisesRegex(KeyError, "first"), pool.scope() as scope:
                scope.post(fail, "first")
            with self.assertRaises(KeyError), pool.scope() as scope:
                for _ in range(3):
                    scope.post(fail, "many")
            self.assertEqual(len(seen), 2)
            done: list[int] = []
            with self.assertRaisesRegex(ValueError, "of the block"), pool.scope() as scope:
                scope.post(fail, "of a task")
                scope.post(done.append, 1)
                raise ValueError("of the block")
            self.assertEqual((len(seen), done), (3, [1]))

    def test_a_pool_that_has_ended_runs_what_was_posted(self) -> None:
        pool = paceline.Pool(1)
        done: list[int] = []
        with pool.scope() as scope:
            pool.shutdown()
            scope.post(done.append, 1)
        self.assertEqual(done, [1])

    def test_other_threads_post_until_the_end(self) -> None:
        with paceline.Pool(2, lane_capacity=2) as pool:
            count = 20
            for _ in range(count):
                done: list[int] = []
                refused: list[int] = []
                with pool.scope() as scope:

                    def post(scope: paceline.Scope = scope, done: list[int] = done) -> None:
                        for number in range(100):
                            try:
                                scope.post(done.append, number)
                            except paceline.ShutDownError:
                                refused.append(number)

                    threads = [threading.Thread(target=post) for _ in range(4)]
                    for thread in threads:
                        thread.start()
                accepted = len(done)
                for thread in threads:
                    thread.join()
                self.assertEqual(accepted, len(done))
                self.assertEqual(accepted + len(refused), 400)

    def test_in_a_forked_child(self) -> None:
        with told(), paceline.Pool(1) as pool:
            gate, begun = threading.Event(), threading.Event()

            def wait() -> None:
                begun.set()
                gate.wait(60)

            with pool.scope() as scope:
                scope.post(wait)
                begun.wait(60)
                child = os.fork()
                if child == 0:
                    try:
                        scope.__exit__(None, None, None)
                    except paceline.ForkedError:
                        os._exit(42)
                    os._exit(1)
                self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 42)
                gate.set()


if __name__ == "__main__":
    import unittest

    unittest.main()
