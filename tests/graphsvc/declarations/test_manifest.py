from __future__ import annotations

import io
import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from graphsvc.declarations.faults import Faults
from graphsvc.declarations.manifest import MAX_FILE_BYTES, MAX_MANIFESTS, manifest_schema, parse_manifests, read_manifests
from graphsvc.declarations.yaml_tree import MAX_VALUES
from graphsvc.domain.errors import InvalidInput
from graphsvc.domain.model import Emit
from graphsvc.domain.names import parse_agent

DEVELOPER = """\
apiVersion: agentplat/v1
kind: Agent
metadata:
  name: developer
  company: acme
  area: platform
  description: Writes the code of a ticket.
spec:
  emits:
    - event: code.ready
      context: diff
      artifacts: [patch, notes]
    - branch.opened
  listens: [ticket.assigned, review.rejected]
  driver:
    kind: model
    model: large
    temperature: 0.5
    stop: [done, "no"]
  instructions: |
    Read the artifact 'ticket' first.
    Write a patch.
  tools: [git, shell]
  budget: {money_usd: 0.5, tokens: 20000, tool_calls: 5, seconds: 60}
  stage: beta
"""

SMALLEST = "apiVersion: agentplat/v1\nkind: Agent\nmetadata: {name: a}\nspec: {}\n"

FAULTY = """\
apiVersion: agentplat/v2
kind: agent
metadata:
  name: 12
  company: ac/me
  areas: x
  description: {a: b}
spec:
  emits:
    - event: 5
      contexts: diff
      artifacts: [patch, 7, yes]
    - on
    - ""
    - {context: x}
    - [a]
    -
    - x
    - x
  listens: foo
  driver:
    kind: modle
    x: .nan
    y: 99999999999999999999
    "z": 99999999999999999999
  instructions: "a\\0b"
  tools: [git, git, 3]
  budget: {money_usd: -1, tokens: 1.5, tool_calls: "5", seconds: .inf, hours: 1}
  stage: gamma
  on: yes
---
---
apiVersion: agentplat/v1
kind: Agent
metadata: {name: b, area: platform, name: c}
spec: &spec
  emits: {a: b}
  driver: fast
  tools: git
  <<: *spec
"""

FAULTS = """\
1:13 apiVersion
2:7 kind
4:9 metadata.name
5:12 metadata.company
6:3 metadata.areas
7:16 metadata.description
10:14 spec.emits[0].event
11:7 spec.emits[0].contexts
12:26 spec.emits[0].artifacts[1]
12:29 spec.emits[0].artifacts[2]
13:7 spec.emits[1]
14:7 spec.emits[2]
15:7 spec.emits[3].event
16:7 spec.emits[4]
17:6 spec.emits[5]
19:7 spec.emits[7]
20:12 spec.listens
22:11 spec.driver.kind
23:8 spec.driver.x
24:8 spec.driver.y
25:10 spec.driver.z
26:17 spec.instructions
27:16 spec.tools[1]
27:21 spec.tools[2]
28:23 spec.budget.money_usd
28:35 spec.budget.tokens
28:52 spec.budget.tool_calls
28:66 spec.budget.seconds
28:72 spec.budget.hours
29:10 spec.stage
30:3 spec.on
32:1 document
35:27 metadata.area
35:37 metadata.name
37:10 spec.emits
38:11 spec.driver
39:10 spec.tools
40:3 spec.<<
40:7 spec.<<
""".splitlines()


def refused(text: str) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parse_manifests(text, "team.yaml")
    places = [violation.place.removeprefix("team.yaml:") for violation in caught.value.violations]
    return [f"{place} {violation.field}" for place, violation in zip(places, caught.value.violations, strict=True)]


@pytest.mark.promise("P-1")
def test_a_manifest_says_who_the_agent_is_and_what_it_emits_and_hears():
    [manifest] = parse_manifests(DEVELOPER, "developer.yaml")
    assert manifest.agent == parse_agent("acme/platform:developer")
    assert manifest.description == "Writes the code of a ticket."
    assert manifest.declaration.emits == (Emit("branch.opened"), Emit("code.ready", "diff", ("notes", "patch")))
    assert manifest.declaration.listens == ("review.rejected", "ticket.assigned")


@pytest.mark.promise("P-1")
def test_the_rest_of_a_manifest_is_kept_as_json_values():
    [manifest] = parse_manifests(DEVELOPER, "developer.yaml")
    assert manifest.settings == {
        "driver": {"kind": "model", "model": "large", "temperature": 0.5, "stop": ["done", "no"]},
        "instructions": "Read the artifact 'ticket' first.\nWrite a patch.\n",
        "tools": ["git", "shell"],
        "budget": {"money_usd": 0.5, "tokens": 20000, "tool_calls": 5, "seconds": 60},
        "stage": "beta",
    }


@pytest.mark.promise("P-1")
@pytest.mark.parametrize(
    ("metadata", "reference"),
    [
        ("{name: a, company: acme, area: x}", "acme/x:a"),
        ("{name: a, company: acme}", "acme:a"),
        ("{name: a, company: acme, area: }", "acme:a"),
        ("{name: a, company: null, area: null}", "*:a"),
        ("{name: a}", "*:a"),
    ],
)
def test_an_agent_belongs_to_an_area_a_company_or_the_installation(metadata, reference):
    [manifest] = parse_manifests(SMALLEST.replace("{name: a}", metadata), "a.yaml")
    assert manifest.agent.text == reference


def test_what_says_nothing_may_be_left_empty():
    text = SMALLEST.replace("spec: {}", "spec: {emits: , listens: , driver: , instructions: , tools: , budget: {}, stage: }")
    [manifest] = parse_manifests(text, "a.yaml")
    [smallest] = parse_manifests(SMALLEST, "a.yaml")
    assert manifest.spec_json() == smallest.spec_json()


def test_the_canonical_form_is_a_manifest_again_and_does_not_depend_on_how_it_was_written():
    [manifest] = parse_manifests(DEVELOPER, "developer.yaml")
    [again] = parse_manifests(manifest.spec_json(), "developer.json")
    assert again.as_json() == manifest.as_json() == json.loads(manifest.spec_json())
    moved = "kind: Agent\n" + DEVELOPER.replace("kind: Agent\n", "", 1).replace("[patch, notes]", "[notes, patch]")
    [other] = parse_manifests(moved, "moved.yaml")
    assert other.spec_json() == manifest.spec_json()


def test_names_are_normalised():
    [manifest] = parse_manifests(SMALLEST.replace("name: a", "name: cafe\u0301"), "a.yaml")
    assert manifest.agent.name == "caf\u00e9"


def test_a_file_may_hold_several_manifests_each_with_its_line():
    manifests = parse_manifests(f"# two agents\n---\n{DEVELOPER}---\n{SMALLEST}", "team.yaml")
    assert [(manifest.agent.text, manifest.line) for manifest in manifests] == [("acme/platform:developer", 3), ("*:a", 29)]


def test_a_few_aliases_stand_for_what_they_name():
    text = SMALLEST.replace("spec: {}", "spec: {emits: &shared [x, y], listens: *shared}")
    [manifest] = parse_manifests(text, "a.yaml")
    assert manifest.declaration.listens == ("x", "y")


@pytest.mark.promise("P-2")
def test_all_faults_of_a_file_are_told_at_once_each_at_its_line_and_column():
    assert refused(FAULTY) == FAULTS


@pytest.mark.promise("P-2")
def test_a_fault_says_what_is_wrong_and_what_would_be_right():
    with pytest.raises(InvalidInput) as caught:
        parse_manifests(SMALLEST.replace("name: a", "name: 12"), "a.yaml")
    assert str(caught.value) == 'a.yaml:3:18: metadata.name: is the number 12; put it in quotes: "12"'


@pytest.mark.promise("P-2")
def test_faults_before_broken_syntax_are_told_with_it():
    assert refused(SMALLEST.replace("kind: Agent", "kind: Robot") + "---\na: b: c\n") == ["2:7 kind", "6:5 document"]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.promise("P-2")
def test_aliases_that_blow_up_are_refused_before_they_do():
    assert refused(BOMB) == ["3:40 c[8]"]


@pytest.mark.promise("P-2")
def test_an_alias_within_what_it_names_is_refused():
    assert refused(SMALLEST.replace("spec: {}", "spec: {driver: &d {kind: model, again: *d}}"))[0] == "4:40 spec.driver.again"


@pytest.mark.promise("P-2")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1:1 document"]),
        ("# nothing but a remark\n", ["1:1 document"]),
        ("\ufeff" + SMALLEST, ["1:1 document"]),
        (SMALLEST + "#" * MAX_FILE_BYTES, ["1:1 document"]),
        ((SMALLEST + "---\n") * MAX_MANIFESTS + SMALLEST, [f"{5 * MAX_MANIFESTS + 1}:1 document"]),
        ("[" * 40 + "]" * 40, [f"1:34 {'[0]' * 33}"]),
        ("[" + "a, " * MAX_VALUES + "]", [f"1:{2 + 3 * (MAX_VALUES - 1)} [{MAX_VALUES - 1}]"]),
        ("a: 'x", ["1:6 document"]),
        ("\tkind: Agent", ["1:1 document"]),
        ("kind: \x07", ["1:7 document"]),
        ('kind: "\\UFFFFFFFF"', ["1:1 document"]),
        ("%YAML 1.7\n---\nkind: Agent", ["1:1 document"]),
    ],
)
def test_a_text_that_is_no_file_of_manifests_is_refused_at_its_place(text, expected):
    assert refused(text) == expected


@pytest.mark.promise("P-2")
@pytest.mark.parametrize(
    "name", ["yes", "NO", "On", "off", "12", "1.5", "0x1f", "1e3", ".inf", "true", "2024-01-31", "1_000", "12:30", "~"]
)
def test_a_name_that_readers_of_yaml_take_for_something_else_must_be_quoted(name):
    assert refused(SMALLEST.replace("name: a", f"name: {name}")) == ["3:18 metadata.name"]
    [manifest] = parse_manifests(SMALLEST.replace("name: a", f"name: '{name}'"), "a.yaml")
    assert manifest.agent.name == name


@pytest.mark.promise("P-2")
@pytest.mark.parametrize(
    "options", ["<<: {a: b}", "? [a]\n: b", "12: a", "on: a", "a: !x b", "a: .nan", "a: [1, .inf]", 'a: "\\0"', '"\\0": a']
)
def test_the_options_of_a_driver_are_free_but_only_in_what_json_can_say(options):
    [refusal] = refused(SMALLEST.replace("spec: {}", f"spec:\n  driver:\n    kind: model\n    {options}".replace("\n:", "\n    :")))
    assert refusal.startswith("7:")


@pytest.mark.promise("P-2")
def test_reading_a_file_goes_on_after_a_faulty_manifest():
    faults = Faults()
    text = f"{SMALLEST}---\n{SMALLEST.replace('Agent', 'Robot')}---\n{SMALLEST}"
    found = [line for line, _ in read_manifests(io.BytesIO(text.encode()), "team.yaml", faults)]
    assert (found, len(faults)) == ([1, 11], 1)


@pytest.mark.promise("P-2")
def test_bytes_that_are_not_utf_8_are_refused_at_their_place():
    faults = Faults()
    assert list(read_manifests(io.BytesIO(b"kind: Agent\nmetadata: \xe9"), "team.yaml", faults)) == []
    with pytest.raises(InvalidInput, match=r"^team.yaml:2:11: document: is not UTF-8: byte 0xe9; save the file as UTF-8$"):
        faults.raise_if_any()


def _plain(text: str) -> Any:
    return json.loads(json.dumps(YAML(typ="safe", pure=True).load(text)))


def _changed(**spec: Any) -> Any:
    changed = deepcopy(_plain(DEVELOPER))
    changed["spec"].update(spec)
    return changed


SCHEMA = Draft202012Validator(manifest_schema())

UNLIKE_A_MANIFEST = {
    "nothing": None,
    "a list": [],
    "no kind": {"apiVersion": "agentplat/v1", "metadata": {"name": "a"}, "spec": {}},
    "another kind": {**_plain(DEVELOPER), "kind": "Robot"},
    "another version": {**_plain(DEVELOPER), "apiVersion": "v2"},
    "an unknown field": {**_plain(DEVELOPER), "status": {}},
    "no name": {**_plain(DEVELOPER), "metadata": {}},
    "an empty name": {**_plain(DEVELOPER), "metadata": {"name": ""}},
    "a long name": {**_plain(DEVELOPER), "metadata": {"name": "a" * 257}},
    "a slash in the company": {**_plain(DEVELOPER), "metadata": {"name": "a", "company": "a/b"}},
    "a colon in the area": {**_plain(DEVELOPER), "metadata": {"name": "a", "company": "a", "area": "b:c"}},
    "a number as company": {**_plain(DEVELOPER), "metadata": {"name": "a", "company": 5}},
    "events that are no list": _changed(emits="x"),
    "an event without name": _changed(emits=[{"context": "x"}]),
    "an event with an unknown field": _changed(emits=[{"event": "x", "body": "y"}]),
    "artifacts that are no list": _changed(emits=[{"event": "x", "artifacts": "y"}]),
    "an artifact twice": _changed(emits=[{"event": "x", "artifacts": ["y", "y"]}]),
    "a number as event": _changed(emits=[5]),
    "too many events": _changed(emits=[f"e{i}" for i in range(1001)]),
    "a trigger twice": _changed(listens=["x", "x"]),
    "a mapping as trigger": _changed(listens=[{"event": "x"}]),
    "a driver without kind": _changed(driver={"model": "large"}),
    "an unknown driver": _changed(driver={"kind": "human"}),
    "a driver by name": _changed(driver="model"),
    "long instructions": _changed(instructions="a" * 65_537),
    "instructions that are a list": _changed(instructions=["a"]),
    "a tool twice": _changed(tools=["git", "git"]),
    "too many tools": _changed(tools=[f"t{i}" for i in range(101)]),
    "a negative budget": _changed(budget={"money_usd": -0.5}),
    "half a token": _changed(budget={"tokens": 0.5}),
    "an unknown budget": _changed(budget={"hours": 1}),
    "a truth value as budget": _changed(budget={"tokens": True}),
    "a budget in words": _changed(budget={"seconds": "60"}),
    "an unknown stage": _changed(stage="gamma"),
}


@pytest.mark.promise("P-2")
def test_the_published_schema_is_a_schema_that_describes_every_field():
    Draft202012Validator.check_schema(manifest_schema())

    def properties(part: Any) -> list[Any]:
        if isinstance(part, dict):
            own = list(part["properties"].values()) if "properties" in part else []
            return own + [found for value in part.values() for found in properties(value)]
        return [found for value in part for found in properties(value)] if isinstance(part, list) else []

    found = properties(manifest_schema())
    assert len(found) > 20
    assert all(field["description"].endswith(".") for field in found)


@pytest.mark.promise("P-2")
@pytest.mark.parametrize("text", [DEVELOPER, SMALLEST])
def test_the_schema_takes_what_is_read(text):
    SCHEMA.validate(_plain(text))
    [manifest] = parse_manifests(text, "a.yaml")
    SCHEMA.validate(manifest.as_json())


@pytest.mark.promise("P-2")
@pytest.mark.parametrize("name", UNLIKE_A_MANIFEST)
def test_the_schema_refuses_what_is_not_read(name):
    assert not SCHEMA.is_valid(UNLIKE_A_MANIFEST[name])
    with pytest.raises(InvalidInput):
        parse_manifests(json.dumps(UNLIKE_A_MANIFEST[name]), "a.json")


_SIGNS = "abn01 \n\t-:,[]{}?&*!|>'\"%#~.<=\\\0\x85\u2028é"
_PIECES = st.sampled_from([*_SIGNS, "\n  ", ": ", "- ", "&a ", "*a", "<<: ", "---\n", "!!x "])
_TEXTS = st.lists(_PIECES, max_size=30).map("".join)
_CHANGED = st.builds(
    lambda at, new: DEVELOPER[:at] + new + DEVELOPER[at + 1 :], st.integers(0, len(DEVELOPER)), st.text(max_size=4)
)


@given(_TEXTS | _CHANGED)
def test_any_text_is_read_or_refused_with_places(text):
    violations = []
    found = []
    try:
        found = parse_manifests(text, "any.yaml")
    except InvalidInput as error:
        violations = error.violations
    assert found or violations
    assert all(violation.place.startswith("any.yaml:") for violation in violations)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content):
    faults = Faults()
    found = list(read_manifests(io.BytesIO(content), "any.yaml", faults))
    assert bool(found) or bool(faults)
