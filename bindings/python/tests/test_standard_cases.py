"""The standard library's own test cases for ThreadPoolExecutor, run with paceline's Executor.

They come with some installations of Python, as the package ``test``; where they do not, these tests
are skipped, and ``test_executor.py``, which follows their list, stands alone.
"""

from __future__ import annotations

import importlib
import sys
import unittest

import paceline

#: Cases that look at the standard executor itself.
STANDARD_ONLY = {
    # Run scripts that import the executor from concurrent.futures; test_executor.py has their like.
    "test_interpreter_shutdown",
    "test_submit_after_interpreter_shutdown",
    "test_cancel_futures_wait_false",
    "test_hang_gh83386",
}

MIXINS = (
    "test_init.InitializerMixin",
    "test_init.FailingInitializerMixin",
    "test_shutdown.ThreadPoolShutdownTest",
    "test_wait.ThreadPoolWaitTests",
    "test_as_completed.AsCompletedTests",
    "test_thread_pool.ThreadPoolExecutorTest",
)


def _cases() -> list[type]:
    name = "test.test_concurrent_futures"
    try:
        whole = importlib.import_module(name)
    except Exception:
        return []
    if not hasattr(whole, "__path__"):
        modules = {module: whole for module, _, _ in (each.partition(".") for each in MIXINS)}
    else:
        modules = {
            module: importlib.import_module(f"{name}.{module}")
            for module, _, _ in (each.partition(".") for each in MIXINS)
        }
    return [getattr(modules[each.partition(".")[0]], each.partition(".")[2]) for each in MIXINS]


class OnPaceline:
    """Put before the standard mixins: their executor is ours."""

    executor_type = paceline.Executor
    worker_count = 5

    def setUp(self) -> None:
        if self._testMethodName in STANDARD_ONLY:  # type: ignore[attr-defined]
            self.skipTest("about the standard executor itself")
        super().setUp()  # type: ignore[misc]


def load_tests(loader: unittest.TestLoader, _: unittest.TestSuite, __: object) -> unittest.TestSuite:
    suite = unittest.TestSuite()
    cases = _cases()
    if not cases:
        suite.addTest(Missing())
    base = _executor_mixin() if cases else ()
    for case in cases:
        bases = (OnPaceline, case, *(each for each in base if not issubclass(case, each)))
        kind = type("Paceline" + case.__name__, bases, {"__module__": __name__})
        suite.addTests(loader.loadTestsFromTestCase(kind))
    return suite


def _executor_mixin() -> tuple[type, ...]:
    name = "test.test_concurrent_futures"
    whole = importlib.import_module(name)
    if hasattr(whole, "__path__"):
        whole = importlib.import_module(name + ".util")
    return (whole.ThreadPoolMixin, whole.BaseTestCase)


class Missing(unittest.TestCase):
    def runTest(self) -> None:
        version = ".".join(map(str, sys.version_info[:2]))
        self.skipTest(f"skipped, because this Python {version} comes without the package 'test'")
