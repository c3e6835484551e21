"""An executor of the standard library's interface, in the place of a ThreadPoolExecutor.

feature: pool/executor
"""

import asyncio
from concurrent.futures import as_completed

import paceline

with paceline.Executor(max_workers=2, thread_name_prefix="example") as executor:
    futures = [executor.submit(pow, number, 2) for number in range(10)]
    assert sum(future.result() for future in as_completed(futures)) == 285
    assert list(executor.map(str.upper, "abc")) == ["A", "B", "C"]

    async def main() -> int:
        return await asyncio.get_running_loop().run_in_executor(executor, sum, [1, 2, 3])

    assert asyncio.run(main()) == 6
assert executor.audit().balances
