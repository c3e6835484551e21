"""An Executor takes the place of the standard library's ThreadPoolExecutor.

feature: pool/executor
prints:
    the sum of ten squares: 285
    mapped: A B C
    in an event loop: 6
    14 submitted, 14 completed, 0 failed
"""

import asyncio
from concurrent.futures import as_completed

import paceline

with paceline.Executor(max_workers=2, thread_name_prefix="example") as executor:
    futures = [executor.submit(pow, number, 2) for number in range(10)]
    print("the sum of ten squares:", sum(future.result() for future in as_completed(futures)))
    print("mapped:", *executor.map(str.upper, "abc"))

    async def main() -> int:
        return await asyncio.get_running_loop().run_in_executor(executor, sum, [1, 2, 3])

    print("in an event loop:", asyncio.run(main()))
audit = executor.audit()
print(f"{audit.submitted} submitted, {audit.completed} completed, {audit.failed} failed")
