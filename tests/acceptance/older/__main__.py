"""``tests.acceptance.older URL``, started by a zygote: the older worker as a process, until it is killed."""

from __future__ import annotations

import json
import sys
import threading

from tests.acceptance.older.worker import OlderWorker


def main() -> None:
    """Finish runs and dispatch them, one after the other."""
    worker = OlderWorker(sys.argv[1])
    print(json.dumps({"ready": True}), flush=True)
    pause = threading.Event()
    while not pause.wait(0.01):
        run_id = worker.lease()
        if run_id is not None:
            worker.finish(run_id)
            worker.dispatch(run_id)


if __name__ == "__main__":
    main()
