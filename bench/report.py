"""Tables and plots in docs/benchmarks.md from the newest result of each benchmark: `python bench/report.py`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "bench", "font.size": 8, "axes.spines.top": False, "axes.spines.right": False})

from matplotlib import pyplot as plt  # noqa: E402 - only after it was told how to draw

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE, PLOTS = ROOT / "bench" / "results", ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "plots"
PEERS = ("networkx", "igraph", "rustworkx")
COLOURS = {"ours": "#1b6ca8", "networkx": "#d1495b", "igraph": "#edae49", "rustworkx": "#66a182"}

Figures = dict[str, Any]


def newest(kind: str) -> Figures | None:
    """The newest result of a kind; the date begins a file's name."""
    files = sorted(path for path in RESULTS.glob(f"*-{kind}.json") if path.stat().st_size)
    found: Figures | None = json.loads(files[-1].read_text(encoding="utf-8")) if files else None
    return found


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table; all columns but the first to the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def time_of(microseconds: float) -> str:
    """A time in the unit that suits it."""
    if microseconds < 1_000:
        return f"{microseconds:.0f} µs"
    return f"{microseconds / 1e3:.1f} ms" if microseconds < 1e6 else f"{microseconds / 1e6:.1f} s"


def where(figures: Figures) -> str:
    """The machine and the versions of a run."""
    run = figures["machine"]
    libraries = ", ".join(f"{name} {run[name]}" for name in ("numba", "numpy", "networkx", "rustworkx", "igraph", "grpcio"))
    load = run["load_before"][0]
    return (
        f"{run['date']}, {run['processor']}, {run['cores']} cores (load {load} when it began), {run['system']}, "
        f"Python {run['python']}, {libraries}."
    )


def saved(figure: Any, name: str) -> str:
    """Keep a plot; returns what the page shows."""
    PLOTS.mkdir(exist_ok=True)
    figure.tight_layout()
    path = PLOTS / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    path.write_text("\n".join(line.rstrip() for line in path.read_text(encoding="utf-8").splitlines()) + "\n", encoding="utf-8")
    return f"![{name.replace('-', ' ')}](plots/{name}.svg)"


def search_section(figures: Figures) -> str:
    """The main figure: ten loops, ours and networkx in one process."""
    graph = figures["graph"]
    carried = "one event for each edge" if graph["event_of_edge"] else "an event of each agent, which its successors hear"
    return f"""## Ten loops through an agent of a random graph

{where(figures)}

{graph["agents"]:,} agents, {graph["edges"]:,} edges between them uniformly at random, carried by {carried};
{figures["samples"]} agents that ten loops go through, {
        figures["rounds"]
    } rounds in which the two take turns, the same lengths found. Ours is
the whole check with its report; the peer is `{figures["peer"]}` on a split vertex.

{
        table(
            ["", "ours", "networkx", "ratio: median", "least", "most"],
            [
                [
                    "median of the agents",
                    time_of(figures["ours_ms_median"] * 1e3),
                    time_of(figures["peer_ms_median"] * 1e3),
                    *(f"{figures[f'ratio_{which}']:.0f}×" for which in ("median", "least", "most")),
                ]
            ],
        )
    }
"""


def _added(checks: Figures) -> str:
    rows = [
        [
            kind,
            f"{one['rounds']:,}",
            time_of(one["echo_us"]),
            time_of(one["check_rpc_us"]),
            time_of(one["check_in_process_us"]),
            f"{one['added_to_echo']:.2f}",
        ]
        for kind, one in checks.items()
    ]
    return table(["check", "rounds", "echo", "over gRPC", "in process", "added / echo"], rows)


def rpc_section(figures: Figures) -> str:
    """What gRPC adds to a check, on the small graph."""
    graph = figures["graph"]
    return f"""## What gRPC adds to a check

{where(figures)}

A random graph of {graph["agents"]:,} agents and {graph["edges"]:,} edges, in memory. One call after the other, in turn:
an empty echo behind the same interceptors, a check over gRPC, the same check in process with its digest; the last column is what
gRPC adds to the check, in echoes.

{_added(figures["checks"])}
"""


_MADE = re.compile(r"(?<=workspaces/)[^/]+|(?<=spaces/)[^/]+(?=$)")
"""Identifiers that a run made up."""


def pages_section(figures: Figures) -> str:
    """Studio's pages."""
    sizes = figures["sizes"]
    rows = [
        [f"`{_MADE.sub('…', page)}`", f"{one['median_ms']:.0f} ms", f"{one['longest_ms']:.0f} ms"]
        for page, one in figures["pages"].items()
    ]
    return f"""## Pages of Studio

{where(figures)}

A workspace with {sizes["runs"]:,} runs, {sizes["tickets"]:,} tickets and {sizes["agents"]:,} agents on SQLite,
over HTTP, one page after the other; the target is {figures["target_ms"]:.0f} ms at the median.

{table(["page", "median", "longest"], rows)}
"""


def _cell(peer: Figures) -> str:
    if not peer["finished"]:
        return str(peer["told"])
    part = "" if peer["finished"] == peer["asked"] else f" ({peer['finished']} of {peer['asked']}, {peer['told']})"
    return f"{time_of(peer['median_us'])}, {peer['ratio_median']:,.1f}×{part}"


def _peers_plot(graphs: Figures, limit_s: float) -> str:
    figure, axes = plt.subplots(figsize=(7.5, 0.42 * len(graphs) + 1))
    names = list(graphs)
    for shift, who in enumerate(("ours", *PEERS)):
        found = [graphs[name]["ours"] if who == "ours" else graphs[name]["peers"][who] for name in names]
        values = [each.get("median_us", limit_s * 1e6) / 1e3 for each in found]
        places = [at + 0.2 * (shift - 1.5) for at in range(len(names))]
        axes.barh(places, values, 0.2, label=who, color=COLOURS[who])
    axes.set(
        xscale="log",
        xlabel=f"median milliseconds for ten loops; a bar to {limit_s * 1e3:,.0f} did not finish",
        yticks=range(len(names)),
    )
    axes.set_yticklabels(names)
    axes.invert_yaxis()
    axes.legend(loc="lower right", frameon=False)
    return saved(figure, "peers")


def peers_section(figures: Figures) -> str:
    """Ours and the peers on every graph."""
    rows = [
        [
            name,
            f"{row['agents']:,}",
            f"{row['incidences']:,}",
            f"{row['pairs']:,}",
            time_of(row["ours"]["median_us"]),
            f"{row['ours']['visits_median']:,.0f}",
        ]
        + [_cell(row["peers"][peer]) for peer in PEERS]
        for name, row in figures["graphs"].items()
    ]
    names = sorted({peer["name"] for row in figures["graphs"].values() for peer in row["peers"].values() if "name" in peer})
    return f"""## Ten loops through an agent, beside other libraries

{where(figures)} Peers: {"; ".join(names)}.

Every peer is a process of its own with {figures["limit_s"]:g} s for loading the graph and answering all questions. Its time is
that of the search alone, without splitting the agent into where loops begin and end; ours is the whole check with its report:
names, events of each hop, notices. Behind each time stands how many times ours it is, as the median over single questions. Where a
peer answered, the lengths of its loops were compared with ours and were the same.

{table(["graph", "agents", "incidences", "pairs", "ours", "visits", *PEERS], rows)}

{_peers_plot(figures["graphs"], figures["limit_s"])}
"""


NOT_MEASURED = "not measured"


def _seconds(figures: Figures, name: str) -> str:
    return f"{figures[name]:.2f} s" if name in figures else NOT_MEASURED


def growth_section(figures: Figures) -> str:
    """Cost by size."""
    made = figures["catalogues"]
    rows = [
        [
            f"{one['incidences']:,}", f"{one['from_parquet_s']:.2f} s", _seconds(one, "from_parquet_cpu_s"),
            f"{one['index_s']:.2f} s",
            f"{one['snapshot']['load_s']:.2f} s", f"{one['peak_memory_mib']:,} MiB",
            *(time_of(each["median_us"]) for each in one["checks"].values()),
            *(time_of(each["median_us"]) for each in one["publications"].values()), f"{one['publications_a_second']:,}",
            f"{one['publications_a_cpu_second']:,}" if "publications_a_cpu_second" in one else NOT_MEASURED,
        ]
        for one in made
    ]  # fmt: skip
    kinds = list(made[0]["checks"])
    short = ["unchanged", "later layer", "closes a loop"]
    head = ["incidences", "from Parquet", "of it CPU", "index", "from a snapshot", "peak", *(f"check: {kind}" for kind in short)]
    head += [*(f"publication: {kind}" for kind in short), "publications a second", "a second of CPU"]
    memory = made[-1]["memory"]
    weights = [[name.replace("_", " "), f"{value:g}"] for name, value in memory.items()]
    hubs = [
        [
            f"{one['width']:,} × {one['width']:,}",
            f"{one['incidences']:,}",
            time_of(one["median_us"]),
            time_of(one["cpu_median_us"]) if "cpu_median_us" in one else NOT_MEASURED,
            f"{one['visits']:,}",
            f"{one['bytes'] / 2**20:.1f} MiB",
        ]
        for one in figures["hubs"]
    ]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 2.8))
    for kind in kinds:
        left.plot([one["incidences"] for one in made], [one["checks"][kind]["median_us"] for one in made], marker="o", label=kind)
    left.set(xscale="log", yscale="log", xlabel="incidences", ylabel="median µs of a check")
    left.legend(frameon=False)
    right.plot([one["width"] for one in figures["hubs"]], [one["median_us"] / 1e3 for one in figures["hubs"]], marker="o")
    right.set(xlabel="emitters, and as many listeners, of one event", ylabel="median ms of a check", ylim=(0, None), xlim=(0, None))
    return f"""## As the graph grows

{where(figures)}

A tenant's catalogue (`graphsvc generate --shape tenant`), loaded from Parquet in columns; the index is made when it is asked for
first. Peak memory is that of the whole process, reading included. Checks and publications with their report, in process: versions
as they are, with a trigger that comes later, and with one that closes a loop, a third each, by seed.

{table(head, rows)}

What the largest of them weighs, in bytes:

{table(["", "bytes"], weights)}

One event with many emitters and listeners, asked about an agent that it leads back to: twice the width, twice the work. A check
that takes longer than one process is left a processor under load is interrupted at its median too; CPU leaves that out.

{table(["emitters × listeners", "incidences", "check", "of it CPU", "visits", "memory"], hubs)}

{saved(figure, "growth")}
"""


def callers_section(figures: Figures) -> str:
    """Rates by number of callers."""
    head = ["", *(f"{callers} callers" for callers in figures["grpc"])]

    def rates(part: str) -> str:
        by_callers = figures[part]
        names = list(next(iter(by_callers.values())))
        return table(head, [[name, *(f"{by_callers[callers][name]:,.0f}" for callers in by_callers)] for name in names])

    return f"""## Over gRPC

{where(figures)}

A tenant's catalogue of {figures["agents"]:,} agents in SQLite; the server is a process of its own, the callers are threads of
another, and both share the cores. One call after the other, in turn: an empty echo behind the same interceptors, a check over gRPC,
the same check in process with its digest; the last column is what gRPC adds to the check, in echoes.

{_added(figures["one_after_the_other"])}

Calls a second, median of windows that took turns. Publications are durable before they are answered.

{rates("grpc")}

The same within one process, where Python's threads share one lock:

{rates("in_process")}
"""


SECTIONS = {
    "search": search_section,
    "peers": peers_section,
    "growth": growth_section,
    "rpc": rpc_section,
    "callers": callers_section,
    "pages": pages_section,
}
HEAD = """# Benchmarks

Made by `make bench` from the newest files of `bench/results`, which hold every figure. A run takes about an hour; its parts can be
run alone (`bench/bench_search.py`, `bench/bench_growth.py`, and so on), and `--help` says how to make them smaller.
Ratios were measured in one run and are what to look at: absolute times depend on the machine and on what else it did.

"""


def main() -> None:
    """Write the page."""
    found = [make(figures) for kind, make in SECTIONS.items() if (figures := newest(kind))]
    PAGE.write_text(HEAD + "\n".join(found), encoding="utf-8")


if __name__ == "__main__":
    main()
