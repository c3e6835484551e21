"""What a task raises is raised by its future; a hook gets it if there is none. The pool goes on.

feature: pool/failures
prints:
    raised by result(): no answer
    given to the hook: no answer
    the next task returned 42
    1 completed, 2 failed
"""

import queue

import paceline

unhandled: "queue.Queue[BaseException]" = queue.Queue()


def fail() -> None:
    raise LookupError("no answer")


with paceline.Pool(on_unhandled=unhandled.put) as pool:
    try:
        pool.submit(fail).result()
    except LookupError as error:
        print("raised by result():", error)
    pool.post(fail)
    print("given to the hook:", unhandled.get(timeout=60))
    print("the next task returned", pool.submit(lambda: 42).result())
audit = pool.audit()
print(f"{audit.completed} completed, {audit.failed} failed")
