"""What a task raises is raised by its future; a hook gets it if there is none. The pool goes on.

feature: pool/failures
prints:
    its future has LookupError('no answer')
    the hook got LookupError('no answer')
    the next task returned 42
    1 completed, 2 failed
"""

import queue

import paceline

unhandled: "queue.Queue[BaseException]" = queue.Queue()


def fail() -> None:
    raise LookupError("no answer")


with paceline.Pool(on_unhandled=unhandled.put) as pool:
    print("its future has", repr(pool.submit(fail).exception()))  # which result() raises
    pool.post(fail)
    print("the hook got", repr(unhandled.get(timeout=60)))
    print("the next task returned", pool.submit(lambda: 42).result())
audit = pool.audit()
print(f"{audit.completed} completed, {audit.failed} failed")
