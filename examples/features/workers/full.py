"""Without room, a submission drops the oldest task, is refused, or runs a task itself.

feature: workers/full
prints:
    oldest: REJECTED
    one more: Full
    newer ran in MainThread
    the last ran in workers_0
"""

import threading

import paceline

inside, go_on = threading.Event(), threading.Event()
with paceline.Pool() as pool:
    with paceline.WorkerPool(pool, threads=1, max_queued=16, max_droppable=1) as workers:

        @workers.task
        def block() -> None:
            inside.set()
            go_on.wait(60)

        @workers.task
        def note(text: str) -> str:
            return f"{text} ran in {threading.current_thread().name}"

        block.submit()
        inside.wait(60)  # the only thread is busy
        oldest = note.options(full="drop_oldest").submit("oldest")
        newer = note.options(full="drop_oldest").submit("newer")
        print("oldest:", oldest.report().status.name)
        try:
            while True:
                note.submit("one more")
        except paceline.Full as full:
            print("one more:", type(full).__name__)
        last = note.options(full="run_here").submit("the last")
        print(newer.result())  # this thread has run it, which made room
        go_on.set()
        print(last.result())
