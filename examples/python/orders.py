"""An online shop on an event hub, with orders, prices and reports as keys. The packer fails at one order, which becomes a dead
letter, and crashes at another, and is restarted. A history keeps all of it, and a notice tells of the crash.

    cargo build --release
    PYTHONPATH=bindings/python/src PACELINE_LIBRARY=target/release/libpaceline.so python3 examples/python/orders.py
"""

import queue
import time

import paceline
from paceline import History, Message, MessageFilter, Retry, Subscription


def settle(*subscriptions: Subscription) -> None:
    """Waits until they have dealt with all that was published."""
    for each in subscriptions:
        while (stats := each.stats()).waiting + stats.running > 0:
            time.sleep(0.001)


def main() -> None:
    with paceline.Pool() as pool:
        # HistoryLogger: the last 100 messages.
        hub = paceline.Hub(pool, histories=[History("shop.>", keep_count=100)])
        has_pears = False

        def report(text: str) -> None:
            hub.publish("shop.reports", text.encode())

        # ResilientSubscriber: tries a message once more, and is restarted after a crash, which is no Exception.
        def pack(order: Message) -> None:
            if order.payload == b"pears" and not has_pears:
                raise LookupError("pears are out of stock")
            if order.payload == b"melons" and order.attempt == 1:
                raise SystemExit("melons are too heavy")
            report(f"packed {order.payload.decode()}")

        packer = hub.subscribe(
            "shop.orders",
            pack,
            retries=Retry.fixed(1, 0.001),
            on_error=lambda order, error: None,
            on_restart=lambda error, count: report(f"the packer was restarted: {count}"),
            measured=True,
        )
        # FilteredSubscriber: the prices of apples.
        apples = MessageFilter.bytes_at(0, b"apples")
        watcher = hub.subscribe(
            "shop.prices",
            lambda price: report(f"new price: {price.payload.decode()}"),
            filter=apples,
        )
        reporter = hub.subscribe("shop.reports", lambda report: print(report.payload.decode()))
        # NotificationService: what goes wrong in the hub is a message, too.
        notices: "queue.Queue[Message]" = queue.Queue()
        warnings = MessageFilter.header("severity", "warning")
        notifier = hub.subscribe("$SYS.>", notices.put, filter=warnings)
        print("subscribers of shop.orders:", hub.subscriber_count("shop.orders"))

        hub.publish_batch("shop.orders", [b"apples", b"pears", b"melons", b"plums"])
        settle(packer, reporter)
        hub.publish_batch("shop.prices", [b"apples 3.20", b"plums 4.10"])
        settle(watcher, reporter)
        print("notice:", notices.get(timeout=60).header("event"))

        for letter in hub.dead_letters():
            print(f"dead letter: {letter.message.payload.decode()}, {letter.attempts} attempts")
        has_pears = True
        redelivered = hub.redeliver()
        settle(packer, reporter)
        print("redelivered:", redelivered.enqueued)

        replayed: "queue.Queue[Message]" = queue.Queue()
        replay = hub.replay("shop.orders", replayed.put)
        for _ in range(4):
            print("replayed:", replayed.get(timeout=60).payload.decode())
        # PerformanceMonitor.
        stats = packer.stats()
        print(f"orders: {stats.matched} matched, {stats.delivered} delivered, {stats.restarts} restarts")
        print(f"from publishing to packing, p99: {stats.latency.p99 * 1e6:.0f} us")
        for each in (packer, watcher, reporter, notifier, replay):
            each.unsubscribe()
        print("subscribers of shop.orders:", hub.subscriber_count("shop.orders"))
        hub.close()


if __name__ == "__main__":
    main()
