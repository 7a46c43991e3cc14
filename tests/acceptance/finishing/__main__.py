"""``tests.acceptance.finishing write|dispatch URL …``, started by a zygote: a writer, or a dispatcher of a wrong design."""

from __future__ import annotations

import argparse

from tests.acceptance.finishing.designs import WRONG, dispatch_wrongly
from tests.acceptance.finishing.writers import write


def main() -> None:
    """Be a writer or a wrong dispatcher."""
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["write", "dispatch"])
    parser.add_argument("url")
    parser.add_argument("--design", choices=sorted(WRONG))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--most-delay-s", type=float, default=0.0)
    parser.add_argument("--format", help="as for every server")
    asked = parser.parse_args()
    if asked.role == "write":
        write(asked.url, asked.seed, asked.count, asked.most_delay_s)
    else:
        dispatch_wrongly(asked.url, asked.design)


if __name__ == "__main__":
    main()
