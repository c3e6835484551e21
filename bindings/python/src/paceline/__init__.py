"""paceline: an embeddable event engine, from Python.

``Executor`` is the standard library's executor interface; ``Pool`` serves descriptors, timers and
tasks; ``WorkerPool`` runs tasks that have names, retries and limits; ``Server`` and ``Http`` serve TCP and Unix
connections on it, ``Udp`` datagrams; ``Hub`` carries messages from publishers to whoever subscribes to their keys, and a
``Bridge`` to the hubs of other processes;
``Queue`` and ``Ring`` carry short byte strings between threads; a ``CompletionQueue`` has what happens as data. Importing makes no threads, and loads neither a module
nor the shared library before a name of it is asked for.
"""

import sys as _sys

if _sys.version_info < (3, 9):
    _running = ".".join(map(str, _sys.version_info[:3]))
    raise ImportError("paceline needs Python 3.9 or later, and this is Python " + _running)

__version__ = "0.1.0"

#: The names that each module gives. ``__init__.pyi`` has the same for type checkers and editors.
_NAMES = {
    "_archive": ("Archive", "LinesRead", "read_lines"),
    "_attempt": ("Attempt", "current_attempt"),
    "_bridge": (
        "Bridge",
        "BridgeStats",
        "Export",
        "ExportStats",
        "Import",
        "ImportStats",
        "NatsSettings",
        "PendingStore",
        "StartAt",
    ),
    "_calls": ("Calls", "Periodic", "TaskFunction"),
    "_counters": ("Audit",),
    "_cq": (
        "Complete",
        "CompletionEntry",
        "CompletionQueue",
        "CompletionStats",
        "ConnDetail",
        "ConnEvent",
        "EntryKind",
    ),
    "_dead": ("DeadLetter", "DeadLetterStats", "Redelivered"),
    "_durable": (
        "DeadTask",
        "DurableCalls",
        "DurableFunction",
        "DurableQueue",
        "DurableReport",
        "DurableStats",
        "DurableTask",
        "Job",
        "current_job",
    ),
    "_errors": (
        "DeadlockError",
        "DurableFailure",
        "Empty",
        "Error",
        "ForkedError",
        "Full",
        "GivenUpError",
        "InvalidError",
        "LibraryError",
        "MailboxFull",
        "NoRespondersError",
        "OsError",
        "ShutDownError",
        "StaleError",
        "TimeoutError",
        "UnsupportedError",
    ),
    "_executor": ("Executor",),
    "_framing": ("Delimited", "FixedLength", "Frame", "LengthPrefixed"),
    "_future": ("Future",),
    "_history": ("History", "HistoryStats", "ReplayMailbox", "ReplayStats"),
    "_http": ("Headers", "Http", "HttpStats", "Request", "RequestBody", "RequestEnd", "Response"),
    "_hub": ("Hub", "HubAudit", "Key"),
    "_inherited": ("Inherited", "inherited"),
    "_integrations": ("Service", "Webhook", "WebhookStats"),
    "_listen": ("Listen",),
    "_log": ("Log", "LogRecord", "LogStats", "quiet", "to_logging"),
    "_mailbox": ("Latency", "Mailbox", "SubscriptionStats"),
    "_message": ("Batch", "Message", "Receipt"),
    "_message_filter": ("MessageFilter",),
    "_metrics": ("Counter", "Gauge", "Histogram", "metrics_format"),
    "_middleware": ("Middleware",),
    "_notices": ("HubError", "Threshold", "Watch"),
    "_policy": ("Rate", "Retry", "RetryBudget"),
    "_pool": (
        "Flow",
        "Handle",
        "Interest",
        "Pool",
        "promote_new_leader",
        "Ready",
        "Report",
        "SetStats",
        "Stats",
        "ThreadStats",
        "Timer",
    ),
    "_publisher": ("Publisher", "PublisherStats"),
    "_queue": ("Queue",),
    "_reports": ("ShutdownReport", "TaskTypeStats", "WorkerStats", "WorkersAudit", "WorkersHealth"),
    "_ring": ("Ring",),
    "_scaling": ("Scaling",),
    "_server": (
        "Admission",
        "Conn",
        "ConnHandler",
        "DrainReport",
        "Reason",
        "Server",
        "ServerStats",
        "Timeout",
        "WriteStatus",
    ),
    "_scope": ("Scope",),
    "_signals": ("Signals",),
    "_settings": ("Settings",),
    "_lane": ("Lane",),
    "_subscriptions": ("Replay", "Subscription"),
    "_supervision": ("Supervisor",),
    "_task": ("PermanentFailure", "RetryAfter", "Task", "TaskReport", "TaskStatus"),
    "_slow": ("SlowReport",),
    "_tasks": ("LaneRef", "Strand"),
    "_topic": ("Codec", "Json", "Topic"),
    "_udp": ("Datagram", "Peer", "Udp", "UdpRef", "UdpStats"),
    "_workers": ("WorkerPool",),
    "ops": ("Ops",),
}

#: Modules that are public themselves.
_MODULES = ("ops",)

#: Where a name is defined: the module, and what it is called there.
_PLACES = {name: (module, name) for module, names in _NAMES.items() for name in names}
_PLACES["library_path"] = ("_library", "path")
_PLACES["library_version"] = ("_library", "version")

#: What ``from paceline import *`` takes: not what replaces a name that Python has already.
__all__ = sorted(_PLACES.keys() - {"TimeoutError"})


def __getattr__(name: str) -> object:
    """Loads the module that defines a name when it is first used (PEP 562)."""
    from importlib import import_module

    if name not in _PLACES and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _refuse_subinterpreters()
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    module, known_as = _PLACES[name]
    value: object = getattr(import_module(f".{module}", __name__), known_as)
    globals()[name] = value
    return value


def _refuse_subinterpreters() -> None:
    """Native threads would call what a subinterpreter has given them back in the main interpreter."""
    try:
        import _interpreters as interpreters  # Python ≥ 3.13
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            return
    if interpreters.get_current() != interpreters.get_main():
        from ._errors import LibraryError

        raise LibraryError(
            "paceline does not run in a subinterpreter: use it in the main interpreter of a process"
        )


def __dir__() -> "list[str]":
    return sorted({*globals(), *_PLACES})
