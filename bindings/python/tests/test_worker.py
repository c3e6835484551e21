"""The worker command, with a broker of the test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import unittest.mock
import urllib.request
from pathlib import Path

import paceline
from paceline import DurableQueue, WorkerPool
from support import PACKAGE
from test_bridge import LONG, Brokered


class Commands(Brokered):
    def setUp(self) -> None:
        super().setUp()
        workers = WorkerPool(self.pool, threads=1)
        self.addCleanup(workers.shutdown, 0, 1)
        self.name = f"w{time.monotonic_ns()}"
        self.queue: DurableQueue = workers.durable(self.name, self.broker.url, ack_wait=1).open()
        self.addCleanup(self.queue.close)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def program(self, functions: str, name: str = "tasks", pool: str = "", url: str = "") -> None:
        """Writes a module with these functions."""
        made = f"paceline.WorkerPool(paceline.Pool(1){pool})"
        queue = f"{made}.durable({self.name!r}, {url or self.broker.url!r}, ack_wait=1)"
        text = f"import os, paceline, time\nqueue = {queue}\n{textwrap.dedent(functions)}"
        (self.folder / f"{name}.py").write_text(text)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "PYTHONUNBUFFERED": "1"}
        environment["PACELINE_LIBRARY"] = paceline.library_path
        command = [sys.executable, "-X", "faulthandler", "-m", "paceline.worker", *arguments]
        pipe = subprocess.PIPE
        worker = subprocess.Popen(
            command, env=environment, cwd=self.folder, stdout=pipe, stderr=pipe, text=True
        )
        assert worker.stdout is not None and worker.stderr is not None
        for clean_up in (worker.stdout.close, worker.stderr.close, worker.wait, worker.kill):
            self.addCleanup(clean_up)
        return worker

    def line(self, worker: subprocess.Popen[str]) -> str:
        assert worker.stdout is not None
        return worker.stdout.readline().rstrip()

    def end(self, worker: subprocess.Popen[str]) -> tuple[int, list[str]]:
        """Its status, and what it has written as an error, without its log."""
        _, err = worker.communicate(timeout=LONG)
        return worker.returncode, [line for line in err.splitlines() if " INFO " not in line]


class Runs(Commands):
    def test_a_task_survives_the_crash_of_its_worker(self) -> None:
        self.program(
            """
            @queue.task
            def work(word):
                print("begun", flush=True)
                while not os.path.exists("go"): time.sleep(0.01)
                return word.upper()
            """
        )
        crashes = self.start("tasks:queue")
        task = self.queue.calls("work").submit("word")
        self.assertEqual(self.line(crashes), "begun")
        crashes.kill()
        crashes.wait()
        (self.folder / "go").touch()
        self.start("tasks:queue")
        self.assertEqual(task.result(LONG), "WORD")

    def test_a_signal_drains_it(self) -> None:
        """Goal: what has begun ends. Method: it ends only after the signal was sent."""
        self.program(
            """
            @queue.task
            def work(path):
                print("begun", flush=True)
                while not os.path.exists(path): time.sleep(0.01)
                return "done"
            """
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number):
                worker, path = self.start("tasks:queue"), self.folder / number.name
                task = self.queue.calls("work").submit(str(path))
                self.assertEqual(self.line(worker), "begun")
                worker.send_signal(number)
                assert worker.stderr is not None
                while "it takes no more tasks" not in worker.stderr.readline():
                    pass
                path.touch()
                self.assertEqual(self.end(worker), (0, []))
                self.assertEqual(task.result(LONG), "done")

    def test_what_does_not_end_is_told_and_run_again(self) -> None:
        """Goal: the time of the drain is kept, whatever a task does. Method: one that never returns, and one that listens; a
        file says that the first worker has ended."""
        self.program(
            """
            @queue.task
            def deaf():
                print("begun", flush=True)
                while not os.path.exists("deaf"): time.sleep(0.01)
                return True

            @queue.task
            def listens():
                print("begun", flush=True)
                while not os.path.exists("listens"):
                    if paceline.current_attempt().cancelled: return False
                    time.sleep(0.01)
                return True
            """
        )
        for name in ("deaf", "listens"):
            with self.subTest(name):
                worker = self.start("tasks:queue", "--drain", "0.1")
                task = self.queue.calls(name).submit()
                self.assertEqual(self.line(worker), "begun")
                worker.send_signal(signal.SIGTERM)
                told = f"paceline.worker: tasks that had not ended, and are run again: 1 of {name}"
                self.assertEqual(self.end(worker), (1, [told]))
                (self.folder / name).touch()
                again = self.start("tasks:queue")
                self.assertIs(task.result(LONG), True)
                again.send_signal(signal.SIGTERM)
                self.assertEqual(self.end(again), (0, []))

    def test_threads_and_the_operations_page(self) -> None:
        self.program(
            """
            @queue.task
            def work():
                return queue._workers.active
            """
        )
        worker = self.start("tasks:queue", "--threads", "3", "--ops", "127.0.0.1:0")
        assert worker.stderr is not None
        page = worker.stderr.readline().split("operations page: ")[1].rstrip()
        self.assertEqual(self.queue.calls("work").submit().result(LONG), 3)
        with urllib.request.urlopen(f"{page}/health/ready", timeout=LONG) as answer:
            self.assertEqual(answer.status, 200)
        self.assertIn("3 threads run work", worker.stderr.readline())
        worker.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(worker), (0, []))


class Example(Commands):
    def test_the_example_submits_and_its_worker_runs(self) -> None:
        folder = PACKAGE.parents[3] / "examples" / "python" / "durable"
        if not folder.exists():
            self.skipTest("skipped, because the examples lie outside this package")
        (self.folder / "pictures.py").write_text((folder / "pictures.py").read_text())
        with unittest.mock.patch.dict(os.environ, NATS_URL=self.broker.url):
            self.start("pictures:queue")
            environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
            environment["PACELINE_LIBRARY"] = paceline.library_path
            command = [sys.executable, "pictures.py", "a.png", "b.png"]
            told = subprocess.run(
                command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=LONG
            )
        self.assertEqual(
            (told.returncode, told.stdout, told.stderr), (0, "small-a.png\nsmall-b.png\n", "")
        )


class Refusals(Commands):
    def test_what_is_wrong_is_told_in_one_line(self) -> None:
        function = "@queue.task\ndef work(): ..."
        self.program(function)
        self.program(function, "four", pool=", threads=4")
        self.program(function, "away", url="nats://127.0.0.1:1")
        self.program("", "empty")
        self.program("class App: queue = 5\nother = queue.open()", "more")
        cases = [
            (["tasks"], "'tasks' names no queue; allowed: module:name"),
            (["missing:queue"], "there is no module 'missing' in "),
            (["tasks.inner:queue"], "there is no module 'tasks.inner' in "),
            (["tasks:quue"], "tasks has no 'quue'; allowed: the name of its DurableQueue"),
            (
                ["tasks:work"],
                "tasks:work is of the type DurableFunction; allowed: a paceline.DurableQueue",
            ),
            (["more:App.queue"], "more:App.queue is of the type int"),
            (["more:queue"], "the queue is open already"),
            (["empty:queue"], f"the queue {self.name!r} has no functions"),
            (
                ["four:queue", "--threads", "3"],
                "--threads is 3, and the program has made a WorkerPool of 4",
            ),
            (["tasks:queue", "--ops", "nowhere"], "nowhere"),
            (
                ["away:queue", "--connect", "0"],
                f"the broker of the queue {self.name!r} cannot be reached: ",
            ),
        ]
        for arguments, told in cases:
            with self.subTest(arguments):
                status, (line,) = self.end(self.start(*arguments))
                self.assertEqual(status, 1)
                self.assertTrue(line.startswith("paceline.worker: "), line)
                self.assertIn(told, line)

    def test_the_reason_of_the_broker_is_told(self) -> None:
        self.program("@queue.task\ndef work(): ...", url="nats://127.0.0.1:1")
        _, (line,) = self.end(self.start("tasks:queue", "--connect", "0"))
        self.assertRegex(line, "(?i)refused")

    def test_what_a_program_raises_is_shown_with_its_place(self) -> None:
        (self.folder / "raises.py").write_text("import missing_of_its_own\n")
        worker = self.start("raises:queue")
        status, lines = self.end(worker)
        self.assertEqual(status, 1)
        self.assertIn("raises.py", "".join(lines))
        self.assertIn("No module named 'missing_of_its_own'", lines[-1])

    def test_options_that_make_no_sense(self) -> None:
        for arguments in (
            ["--threads", "0"],
            ["--drain", "-1"],
            ["--drain", "nan"],
            ["--log-level", "loud"],
        ):
            with self.subTest(arguments):
                self.assertEqual(self.end(self.start("tasks:queue", *arguments))[0], 2)


del Brokered, Commands

if __name__ == "__main__":
    unittest.main()
