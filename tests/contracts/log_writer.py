"""A process that appends to a log: `python log_writer.py URL AUTHOR BLOCKS SIZE`; without end when BLOCKS is 0.

It says "ready", waits for a line, and then writes the last revision of each block as soon as the block is committed.
With the environment variable WITHOUT_PYSQLITE3 it runs as on a machine that has no wheel of it.
"""

from __future__ import annotations

import itertools
import os
import sys
from contextlib import closing

from graphsvc.store.opening import open_store
from tests.contracts.entries import agent, append, published


def write(url: str, author: str, blocks: int, size: int) -> None:
    with closing(open_store(url)) as store:
        print("ready", flush=True)
        sys.stdin.readline()
        for block in range(blocks) if blocks else itertools.count():
            numbers = range(block * size + 1, (block + 1) * size + 1)
            appended = append(store, *(published(number, agent(author), [f"{author}.{number}"]) for number in numbers))
            print(appended[-1].revision, flush=True)


if __name__ == "__main__":
    if os.environ.get("WITHOUT_PYSQLITE3"):
        sys.modules["pysqlite3"] = None  # type: ignore[assignment]
    write(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
