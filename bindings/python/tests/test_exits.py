"""The interpreter ends in mid-traffic, again and again, and never abnormally.

PACELINE_EXITS=1000 PYTHONPATH=bindings/python/src python3 bindings/python/tests/test_exits.py
"""

from __future__ import annotations

import os
import unittest
from concurrent.futures import ThreadPoolExecutor

from support import Case, run, unrun_apart

EXITS = int(os.environ.get("PACELINE_EXITS", "40"))

#: An executor, a pool with sockets and timers, a ring and a queue, all busy, and nothing closed. How it
#: ends, and how far it has come by then, differs from round to round.
TRAFFIC = """
    import os, random, socket, sys, threading, time
    import paceline
    random.seed({seed})
    executor, pool = paceline.Executor(3), paceline.Pool(3)
    ring = paceline.Ring(pool, lambda batch: None)
    queue = paceline.Queue(64)

    def bounce(connection, ready):
        connection.send(connection.recv(100))

    pairs = [socket.socketpair() for _ in range(4)]
    for ours, theirs in pairs:
        pool.register(ours, bounce)
        pool.register(theirs, bounce)
        ours.send(b"ball")
    pool.every(0.0005, lambda: None)

    def tick():
        try:
            ring.publish(b"tick", 0)
        except (paceline.Full, paceline.ShutDownError):
            pass

    pool.every(0.0003, tick)

    def again():
        try:
            pool.post(again)
        except RuntimeError:
            pass

    again()

    def feed():
        while True:
            try:
                queue.push(b"x", 0.001)
            except paceline.Full:
                pass
            try:
                executor.submit(abs, 1)
            except RuntimeError:
                return

    def drain():
        while True:
            queue.pop_batch()

    threading.Thread(target=feed, daemon=True).start()
    threading.Thread(target=drain, daemon=True).start()
    results = executor.map(abs, range(1000))
    time.sleep(random.random() * 0.02)
    way = random.randrange(4)
    if way == 0:
        sys.exit(3)
    if way == 1:
        raise KeyError("on purpose")
    if way == 2:
        executor.shutdown(wait=False)
        pool.shutdown()
"""


#: A stream server and an HTTP server that connect to each other's like, with clients on threads that
#: nobody waits for, and answers that are given elsewhere.
SERVERS = """
    import random, socket, sys, threading, time
    import paceline
    random.seed({seed})

    class Bounce(paceline.ConnHandler):
        def data(self, conn, data):
            conn.write(data)

    pool = paceline.Pool(2)
    executor = paceline.Executor(2)
    server = paceline.Server(pool, "127.0.0.1:0", Bounce, threads=random.choice((1, 3)))
    http = paceline.Http(pool, threads=random.choice((1, 3)))

    def later(request):
        try:
            request.respond(b"later")
        except paceline.Error:
            pass

    @http.get("/{{way}}")
    def answer(request):
        way = random.randrange(3)
        if way == 0:
            return b"at once"
        if way == 1:
            return paceline.Response(b"piece" for _ in range(1000))
        try:
            executor.submit(later, request)
        except RuntimeError:
            return b"at the end"

    http.start()
    conns = [server.connect(server.addresses[0]) for _ in range(4)]
    for conn in conns:
        conn.write(b"ball")

    def ask():
        host, port = http.addresses[0].split(":")
        while True:
            try:
                with socket.create_connection((host, int(port))) as client:
                    for _ in range(50):
                        client.sendall(b"GET /x HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
                        client.recv(100000)
            except OSError:
                return

    for _ in range(3):
        threading.Thread(target=ask, daemon=True).start()
    time.sleep(random.random() * 0.05)
    way = random.randrange(5)
    if way == 0:
        sys.exit(3)
    if way == 1:
        raise KeyError("on purpose")
    if way == 2:
        pool.shutdown()
    if way == 3:
        http.close()
        del server, conns
"""


#: A hub whose mailboxes, handlers, requests, histories and dead letters are all in use by threads that nobody
#: waits for.
HUBS = """
    import logging, random, sys, threading, time
    import paceline
    random.seed({seed})
    logging.getLogger("paceline").addHandler(logging.NullHandler())
    pool = paceline.Pool(2)
    hub = paceline.Hub(pool, threads=2, histories=[paceline.History(keep_count=100)])
    box, few = hub.mailbox(">", overflow="drop-oldest"), hub.mailbox("a.*", capacity=4, overflow="drop-newest")
    key, publisher = hub.key("a.b"), hub.publisher("p", allow=["a.>"])
    topic, replay = hub.topic("t.x", paceline.Json()), hub.replay_mailbox(">", now=True)

    @hub.subscribe("a.*", overflow="drop-oldest", retries=paceline.Retry.fixed(3, 0.01))
    def fails(message):
        if random.random() < 0.3:
            raise ValueError("on purpose")

    @hub.subscribe("q.*")
    def answers(message):
        hub.reply(message, b"yes")

    def come_and_go():
        with hub.mailbox("a.*", group="g") as member:
            member.pull(1, 0.001)
        hub.subscribe("a.*", abs).unsubscribe(random.choice(("async", "sync", "drain")))

    def again(call):
        while True:
            try:
                call()
            except (paceline.ShutDownError, paceline.StaleError):
                return
            except paceline.Error:
                pass

    for call in (
        lambda: hub.publish("a.b", b"x"),
        lambda: publisher.publish(key, b"y"),
        lambda: topic.publish(1),
        lambda: hub.request("q.x", b"", 0.5),
        lambda: box.pull(10, 0.01),
        lambda: few.pull(10, 0.01),
        lambda: replay.pull(10, 0.01),
        lambda: hub.query(limit=3),
        lambda: hub.redeliver(limit=3),
        lambda: hub.dead_letters(limit=3),
        lambda: hub.remove_dead_letters(limit=2),
        lambda: (hub.patterns(), hub.history_stats(), hub.audit()),
        come_and_go,
    ):
        threading.Thread(target=again, args=(call,), daemon=True).start()
    time.sleep(random.random() * 0.05)
    way = random.randrange(5)
    if way == 0:
        sys.exit(3)
    if way == 1:
        raise KeyError("on purpose")
    if way == 2:
        pool.shutdown()
    if way == 3:
        ends = [threading.Thread(target=hub.close) for _ in range(10)]
        for each in ends:
            each.start()
        for each in ends:
            each.join()
"""


def one_exit(seed: int, script: str = TRAFFIC) -> str:
    """What was wrong with it; empty if nothing was."""
    told = run(script.format(seed=seed))
    raised = "KeyError: 'on purpose'" in told.stderr
    said = unrun_apart(told.stderr)
    fine = (told.returncode, said) in ((0, ""), (3, "")) or told.returncode == 1 and raised
    clean = told.stderr.count("Traceback") == int(raised)
    return "" if fine and clean else f"seed {seed}: {told.returncode}\n{told.stderr}"


class Exits(Case):
    def test_exits_in_mid_traffic(self) -> None:
        wrong = []
        # Two at a time, each in a process of its own.
        with ThreadPoolExecutor(2) as side_by_side:
            for start in range(0, EXITS, 20):
                self.setUp()
                wrong += filter(None, side_by_side.map(one_exit, range(start, min(start + 20, EXITS))))
        self.assertEqual(wrong, [])
        print(f"{EXITS} exits, none abnormal")

    def test_exits_with_live_servers(self) -> None:
        wrong = []
        with ThreadPoolExecutor(2) as side_by_side:
            for start in range(0, EXITS, 20):
                self.setUp()
                seeds = range(start, min(start + 20, EXITS))
                told = side_by_side.map(one_exit, seeds, [SERVERS] * len(seeds))
                wrong += filter(None, told)
        self.assertEqual(wrong, [])

    def test_exits_with_live_hubs(self) -> None:
        # They are longer than the others.
        seeds = range(max(1, EXITS // 8))
        with ThreadPoolExecutor(2) as side_by_side:
            told = side_by_side.map(one_exit, seeds, [HUBS] * len(seeds))
            self.assertEqual(list(filter(None, told)), [])


if __name__ == "__main__":
    unittest.main()
