"""``python -m tests.mutants [--promise G-1]``: try the mutants of tests/mutants/mutants.yaml on this checkout.

Exit status 0: the tests noticed every one. 1: at least one was not noticed. 2: nothing could be judged.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from tests.mutants.harness import MUTANTS, MutantFault, Verdict, judge, read_mutants


def _line(verdict: Verdict) -> str:
    mutant = verdict.mutant
    return f"{mutant.promise:5} {mutant.id:44} {verdict.outcome.value:10} {verdict.seconds:6.1f} s  {verdict.detail}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--promise", action="append", metavar="ID", help="only the mutants of this promise; may be repeated")
    parser.add_argument("--id", action="append", metavar="MUTANT", help="only this mutant; may be repeated")
    parser.add_argument("--workers", type=int, default=2, help="how many run at a time (default 2)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that copies and processes are cleared away
    checkout = Path.cwd()
    verdicts: list[Verdict] = []
    try:
        wanted = [
            mutant
            for mutant in read_mutants(checkout / MUTANTS)
            if (not options.promise or mutant.promise in options.promise) and (not options.id or mutant.id in options.id)
        ]
        if not wanted:
            raise MutantFault("no mutant in the list is meant by these options")
        print(f"{len(wanted)} mutants; first their tests on the unchanged tree ...", flush=True)
        for verdict in judge(wanted, checkout, prepare=["-m", "tests.compile_kernels"], workers=options.workers):
            verdicts.append(verdict)
            print(_line(verdict), flush=True)
    except MutantFault as fault:
        print(fault, file=sys.stderr)
        return 2
    missed = [verdict for verdict in verdicts if not verdict.satisfies]
    for verdict in missed:
        print(f"\n{_line(verdict)}\n{verdict.output}")
    print(f"\n{len(verdicts) - len(missed)} noticed, {len(missed)} not noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
