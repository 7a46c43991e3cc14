"""The demonstration, run to its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.agentplat.processes import END_S, ROOT, START_S, environment

HIDDEN_IN = {
    "English": "an agent outside your access",
    "Portuguese": "um agente fora do seu acesso",
    "Hebrew": "סוכן שמחוץ לגישה שלכם",
}
ISOLATES = str.maketrans("", "", "\u2066\u2067\u2068\u2069")


def _path(line: str) -> list[str]:
    """The agents of a loop as the line shows them; the barrier's mark is left out."""
    return line.translate(ISOLATES).partition("(")[0].strip().split(" → ")


LAST_STEP = (
    "Finished at hop 8, the last of the chain of run 3; events not published: change.proposed; the chain went round"
    " acme/platform:developer → acme/platform:reviewer → acme/platform:developer, which was warned about when it was published"
)


@pytest.mark.promise("O-1", "P-9", "R-7", "R-18", "A-5", "A-9", "W-4", "D-1", "D-3", "D-11", "D-14", "D-16")
def test_the_demonstration_ends_by_itself_and_tells_a_reader_of_a_hidden_agent_only_that_there_is_one(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        cwd=tmp_path,
        env=environment(DEMO_EXIT="1"),
        capture_output=True,
        encoding="utf-8",
        timeout=2 * START_S + 2 * END_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    parts = dict(part.split("\n", 1) for part in done.stdout.split("\n== ")[1:])
    warnings = {title: [_path(line) for line in part.splitlines() if " → " in line] for title, part in parts.items()}
    [published] = [paths for title, paths in warnings.items() if title.startswith("Publishing it")]
    assert len(published) == 5
    assert [HIDDEN_IN["English"] in path for path in published] == [False] * 4 + [True]
    assert ["scanner" in path for path in published] == [False] * 3 + [True, False]
    for language, hidden in HIDDEN_IN.items():
        title = f"The same report for a reader of acme/platform alone, in {language}"
        way = ["developer", "reviewer", "tester", "releaser", hidden, "developer"]
        assert warnings[title] == [[*way[:2], way[0]], [*way[:3], way[0]], way, way, way]
        for name in ("integrator", "scanner", "globex", "acme/docs"):
            assert name not in parts[title]
    [read] = [part for title, part in parts.items() if title.startswith("The one reads it by name")]
    assert "Call 1 is done" in read
    assert "Call 2 is refused: the event's contract has no artifact of this name; its names: findings" in read
    [stopped] = [part for title, part in parts.items() if title.startswith("The other is in another area")]
    assert "incident.collected did not start acme/finance:controller: the data barrier: data of the area acme/support" in stopped
    [worked] = [part for title, part in parts.items() if title.startswith("The loop at work")]
    assert [line.partition(":")[0] for line in worked.splitlines() if line.startswith("hop ")] == [f"hop {i}" for i in range(9)]
    [trail] = [part for title, part in parts.items() if title.startswith("The trail of a run at the last hop")]
    assert [line.endswith(LAST_STEP) for line in trail.splitlines() if "Finished" in line] == [True, True]
    assert "; every one was handled" in parts["Proof that every finished run was handled"]
    _assert_work_was_handed_on(parts)
    _assert_a_proposal_became_a_pipeline(parts)


def _assert_work_was_handed_on(parts: dict[str, str]) -> None:
    [tree] = [part for title, part in parts.items() if title.startswith("It delegated")]
    refused = [line.strip() for line in tree.splitlines() if "Delegation refused" in line]
    lead, builder = "acme/delivery:lead", "acme/delivery:builder"
    assert refused == [
        f"Delegation refused: cycle detected ({lead} → {builder} → {lead}).",
        "Delegation refused: chain depth 4 exceeds the cap of 3.",
    ]
    assert [line.strip().partition(" ")[0] for line in tree.splitlines() if line.strip().startswith("#")] == [
        "#1",
        "#2",
        "#3",
        "#4",
    ]
    said = parts["What the space says of it"]
    assert "acme/delivery:builder  result: Built, with three tests." in said
    [output] = [part for title, part in parts.items() if title.startswith("The builder's output")]
    assert output.index("The output does not meet its contract; faults: 1, tries left: 2") < output.index(
        "The output meets its contract"
    )


def _assert_a_proposal_became_a_pipeline(parts: dict[str, str]) -> None:
    [ran] = [part for title, part in parts.items() if title.startswith("Its pipeline ran")]
    steps = [line.split()[:2] for line in ran.splitlines() if line.startswith("  ")]
    assert steps == [[key, "finished"] for key in ("use", "wishes", "order", "synthesis")]
