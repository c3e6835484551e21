"""The structured log: to functions, to ``logging``, to a file; levels; its end."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import signal
import tempfile
import threading
import unittest
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paceline
from paceline import Log, LogRecord, Pool, WorkerPool
from support import Case, run
from test_hub_failures import ODD, Broken

LONG = 300.0


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(level=1)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


class Logs(Case):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_a_function_is_told(self) -> None:
        told: list[LogRecord] = []
        threads = set()

        def tell(record: LogRecord) -> None:
            threads.add(threading.current_thread().name)
            told.append(record)
            if len(told) == 1:
                raise RuntimeError("on purpose")

        log = Log(levels="info", callback=tell, logger=False)
        with self.assertLogs("paceline", logging.ERROR) as failed, Pool(1, name="told", log=log):
            log.flush(LONG)
        log.close(LONG)
        self.assertIn("a function of a log has failed", failed.output[0])
        events = [record.event for record in told]
        self.assertEqual(events, ["pool.started", "pool.draining", "pool.stopped"])
        first = told[0]
        self.assertEqual((first.level, first.component, first.pool), ("info", "pool", "told"))
        self.assertEqual(first.fields["threads"], 0)
        self.assertGreater(first.time, 1.6e9)
        self.assertEqual(str(first), f"pool.started: {first.message} threads=0 reserved=0 sets=1")
        self.assertEqual(threads, {"paceline_log"})
        stats = log.stats()
        self.assertEqual((stats.told, stats.dropped, stats.errors, stats.last_error), (3, 0, 0, None))

    def test_the_end_is_waited_for_until_functions_were_told(self) -> None:
        """``flush`` and ``close`` wait for Python's functions, too, as long as they are asked to; and a log that
        ends tells of no error."""
        kept, gate, told = Kept(), threading.Event(), []
        logger = logging.getLogger("paceline")
        self.addCleanup(logger.removeHandler, kept)
        self.addCleanup(gate.set)
        logger.addHandler(kept)

        def tell(record: LogRecord) -> None:
            gate.wait()
            told.append(record)

        log = Log(levels="info", callback=tell, logger=False)
        with Pool(1, log=log):
            for wait in (log.flush, log.close):
                with self.assertRaises(TimeoutError):
                    wait(0.001)
            waiting = [threading.Thread(target=wait, args=(LONG,)) for wait in (log.flush, log.close)]
            waiting.append(threading.Thread(target=log.flush))
            for thread in waiting:
                thread.start()
            self.assertTrue(all(thread.is_alive() for thread in waiting))
            gate.set()
            self.until(lambda: not any(thread.is_alive() for thread in waiting), 60)
            self.assertEqual([record.event for record in told], ["pool.started"])
        self.until(lambda: "paceline_log" not in [one.name for one in threading.enumerate()])
        self.assertEqual([record.getMessage() for record in kept.records], [])

    def test_logging_is_told(self) -> None:
        kept = Kept()
        logger = logging.getLogger("paceline.pool")
        self.addCleanup(logger.setLevel, logger.level)
        self.addCleanup(logger.removeHandler, kept)
        logger.addHandler(kept)
        logger.setLevel(logging.INFO)
        log = Log(levels="trace")
        with Pool(1, log=log):
            pass
        log.close(LONG)
        self.assertEqual({record.levelno for record in kept.records}, {logging.INFO})
        first = kept.records[0]
        own: Any = vars(first)["paceline"]
        self.assertIsInstance(own, LogRecord)
        self.assertEqual((first.name, first.getMessage()), ("paceline.pool", str(own)))
        self.assertEqual(first.created, own.time)

    def test_a_file_and_levels(self) -> None:
        path = self.folder / "all.log"
        told: list[LogRecord] = []
        log = Log(path, levels="off,hub=warn", logger=False, callback=told.append)
        levels = log.levels()
        self.assertEqual((levels["hub"], levels["pool"], len(levels)), ("warn", "off", 9))
        with Pool(1, log=log) as pool:
            hub = paceline.Hub(pool)
            full = hub.mailbox("full", capacity=1)
            hub.publish("full", b"x")
            for _ in range(2):
                self.assertRaises(paceline.MailboxFull, hub.publish, "full", b"x")
            log.flush(LONG)
            self.assertIn("subscription.overflow", path.read_text())
            self.assertEqual(told[0].fields["pattern"], "full")
            log.set_levels("info")
            self.assertEqual(set(log.levels().values()), {"info"})
            del full
        log.close(LONG)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual(lines[0]["event"], "subscription.overflow")
        self.assertEqual((lines[0]["level"], lines[0]["fields"]["pattern"]), ("warn", "full"))
        self.assertEqual(lines[-1]["event"], "pool.stopped")
        with self.assertRaisesRegex(paceline.InvalidError, "levels is .*pol=info"):
            log.set_levels("pol=info")

    def test_several_logs_write_one_file(self) -> None:
        """By a link, whose target is rotated where it lies."""
        path = self.folder / "all.log"
        path.symlink_to("real")
        logs = [Log(path, levels="off,pool=info", logger=False, max_size=1024) for _ in range(2)]
        for _ in range(10):
            for log in logs:
                Pool(1, log=log).shutdown()
                log.flush(LONG)
        stats = []
        for log in logs:
            log.close(LONG)
            stats.append(log.stats())
        self.assertEqual([(each.dropped, each.errors) for each in stats], [(0, 0)] * 2)
        self.assertTrue(path.is_symlink())
        names = {name.name for name in self.folder.iterdir()}
        self.assertEqual(names, {"all.log", "real", "real.1", "real.2", "real.3"})
        for name in names - {"all.log"}:
            for line in (self.folder / name).read_text().splitlines():
                json.loads(line)

    def test_a_device_and_a_pipe_are_not_rotated(self) -> None:
        path = self.folder / "pipe"
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        log = Log(path, levels="off,pool=info", logger=False, max_size=1024, files=1)
        for _ in range(10):
            Pool(1, log=log).shutdown()
        log.close(LONG)
        self.assertEqual(log.stats().errors, 0)
        lines = os.read(reader, 1 << 16).splitlines()
        self.assertEqual(len(lines), log.stats().told)
        self.assertTrue(all(json.loads(line)["component"] == "pool" for line in lines))
        self.assertTrue(path.is_fifo())
        with self.assertRaisesRegex(paceline.InvalidError, "the file of lines is .*, a directory"):
            Log(self.folder, logger=False)

    def test_settings(self) -> None:
        path = self.folder / "settings.yaml"
        file = self.folder / "a.log"
        path.write_text(f"log:\n  file: {file}\n  levels: off,task=info\n")
        log = Log(settings=path, logger=False)
        with Pool(1, log=log) as pool:
            WorkerPool(pool, threads=1).shutdown()
            log.flush(LONG)
            self.assertIn("workers.stopped", file.read_text())
        log.close(LONG)
        events = [json.loads(line)["event"] for line in file.read_text().splitlines()]
        self.assertEqual(events, ["workers.draining", "workers.stopping", "workers.stopped"])
        for wrong in ({"files": 0}, {"capacity": 0}, {"max_size": 5}, {"levels": "loud"}):
            with self.assertRaisesRegex(paceline.InvalidError, f"^{next(iter(wrong))} is"):
                Log(**wrong)  # type: ignore[arg-type]

    def test_waiting_for_itself_is_refused(self) -> None:
        said: list[BaseException] = []
        logs: list[Log] = []

        def wait(_: LogRecord) -> None:
            for call in (logs[0].flush, logs[0].close):
                try:
                    call(LONG)
                except paceline.DeadlockError as error:
                    said.append(error)

        logs.append(Log(levels="off", callback=wait, logger=False))
        with Pool(1, log=logs[0]):
            pass
        logs[0].set_levels("info")
        with Pool(1, log=logs[0]):
            self.until(lambda: len(said) >= 2)
        logs[0].close(LONG)

    def test_a_lost_log_ends(self) -> None:
        log = Log(logger=False, callback=print)
        thread = next(one for one in threading.enumerate() if one.name == "paceline_log")
        lost = weakref.ref(log)
        del log
        gc.collect()
        self.assertIsNone(lost())
        thread.join(LONG)
        self.assertFalse(thread.is_alive())

    def test_the_interpreter_ends_with_a_log(self) -> None:
        script = """
            import logging, paceline
            logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
            paceline.Log(levels="info").install()
            pool = paceline.Pool(1, name="installed")
            print("end")
        """
        ended = run(script)
        self.assertEqual((ended.returncode, ended.stdout), (0, "end\n"), ended.stderr)
        self.assertIn("paceline.pool pool.started", ended.stderr)

    @unittest.skipUnless(hasattr(os, "fork"), "forks")
    def test_in_a_forked_child_it_says_so(self) -> None:
        script = """
            import os, warnings, paceline
            warnings.simplefilter("ignore")
            log = paceline.Log(logger=False, callback=print)
            child = os.fork()
            if child == 0:
                try:
                    log.flush()
                except paceline.ForkedError:
                    os._exit(7)
                os._exit(1)
            _, status = os.waitpid(child, 0)
            log.close(60)
            print(os.waitstatus_to_exitcode(status))
        """
        ended = run(script)
        self.assertEqual((ended.returncode, ended.stdout), (0, "7\n"), ended.stderr)

    def test_what_is_said_when_nobody_listens(self) -> None:
        """What Python raises is told to ``logging``, and each other kind of fault is one line: none is told twice."""
        script = """
            import http.client, paceline
            {first}
            def bad(request):
                raise RuntimeError("a route's fault")
            def failing():
                raise RuntimeError("a task's fault")
            with paceline.Pool(1) as pool:  # the lines of one thread do not mix
                for _ in range(3):
                    pool.post(failing)
                server = paceline.Http(pool, "127.0.0.1:0")
                server.route("GET", "/bad")(bad)
                server.start()
                client = http.client.HTTPConnection(server.addresses[0])
                client.request("GET", "/bad")
                print(client.getresponse().status)
                client.close()
                server.close()
            log = paceline.Log("/dev/full", levels="off,pool=info", logger=False)
            for _ in range(20):
                with paceline.Pool(1, log=log):
                    pass
                log.flush()
            print(log.stats().errors > 1)
            """
        for first, lines in (("", 1), ("paceline.quiet()", 0)):
            with self.subTest(first):
                ended = run(script.format(first=first))
                self.assertEqual((ended.returncode, ended.stdout), (0, "500\nTrue\n"), ended.stderr)
                said = [line for line in ended.stderr.splitlines() if line.startswith("paceline: ")]
                self.assertEqual(len(said), lines, ended.stderr)
                self.assertEqual(
                    sum("log.failed: No space left" in line for line in said), lines, ended.stderr
                )
                self.assertEqual(ended.stderr.count("RuntimeError: a task's fault"), 3, ended.stderr)
                self.assertEqual(ended.stderr.count("RuntimeError: a route's fault"), 1, ended.stderr)

    def test_whatever_a_function_raises_its_thread_goes_on(self) -> None:
        for make in ODD:
            raised, told = make(), []

            def tell(record: LogRecord) -> None:
                told.append(record.event)
                raise raised

            with self.subTest(type(raised).__name__):
                log = Log(levels="info", callback=tell, logger=False)
                with self.quiet():
                    with Pool(1, log=log):
                        log.flush(LONG)
                    log.close(LONG)
                self.assertEqual(told, ["pool.started", "pool.draining", "pool.stopped"])

    def test_a_handler_of_logging_that_fails(self) -> None:
        with self.quiet():
            log = Log(levels="info")
            with Pool(1, log=log):
                log.flush(LONG)
            log.close(LONG)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Only a handler that fails is told."""
        logger, broken = logging.getLogger("paceline"), Broken()
        logger.addHandler(broken)
        level, logger.propagate = logger.level, False
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(broken)
            logger.setLevel(level)
            logger.propagate = True

    @unittest.skipUnless(hasattr(signal, "setitimer"), "signals")
    def test_a_flush_that_waits_is_interrupted(self) -> None:
        """By a signal's handler, while a function of the log holds it up."""
        gate = threading.Event()
        self.addCleanup(gate.set)
        log = Log(levels="info", callback=lambda _: gate.wait(), logger=False)
        pool = Pool(1, log=log)
        self.addCleanup(pool.shutdown)

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt("from a signal")

        self.addCleanup(signal.signal, signal.SIGALRM, signal.getsignal(signal.SIGALRM))
        signal.signal(signal.SIGALRM, interrupt)
        for wait in (log.flush, log.close):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with self.assertRaises(KeyboardInterrupt):
                wait()
        gate.set()
        log.close(LONG)


if __name__ == "__main__":
    unittest.main()
