"""Sessions, forms and headers of the pages."""

from __future__ import annotations

import time

import httpx
import jwt
import pytest
from agentplat.domain.access import OPERATOR
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.browser.stage import Stage
from tests.browser.visits import anybody, seal_on, signed_in

ECHO = "/agents/acme%2Fplatform%3Aecho"


def _paused(stage: Stage) -> bool:
    [listed] = [one for one in stage.world.cases.list_agents(stage.author, None, 100) if one.agent.ref.name == "echo"]
    return listed.agent.paused


@pytest.mark.promise("U-10")
def test_every_answer_says_what_browsers_are_to_keep_to(stage: Stage) -> None:
    with signed_in(stage, stage.author) as client:
        for path in ("/agents", "/nothing", "/runs/999999", ECHO, "/graph?scope=%00", "/sign-out"):
            headers = client.get(path).headers
            policy = dict(part.partition(" ")[::2] for part in headers["content-security-policy"].split("; "))
            assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
            assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
        style = client.get("/agents").text.partition('rel="stylesheet" href="')[2].partition('"')[0]
        kept = client.get(style)
        assert (kept.status_code, kept.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")


@pytest.mark.promise("U-10")
def test_cookies_are_for_the_server_alone_and_for_encrypted_connections_but_on_this_machine(stage: Stage) -> None:
    with anybody(stage) as client:
        form = {"seal": seal_on(client.get("/sign-in").text), "token": stage.world.token(stage.author)}
        cookie = client.post("/sign-in", data=form).headers["set-cookie"]
        assert "studio-session=" in cookie
        assert "HttpOnly; Max-Age=43200; Path=/; SameSite=lax" in cookie
        assert "Secure" not in cookie
        elsewhere = client.get("/sign-in", headers={"Host": "studio.example"}).headers["set-cookie"]
        assert elsewhere.startswith("__Host-studio-guest=")
        assert "Secure" in elsewhere
        assert stage.world.token(stage.author) not in cookie


@pytest.mark.promise("U-10")
@pytest.mark.parametrize(
    ("more", "headers"),
    [
        ({"seal": ""}, {}),
        ({"seal": "forged"}, {}),
        ({}, {"Origin": "https://elsewhere.example"}),
        ({}, {"Origin": "null"}),
        ({}, {"Sec-Fetch-Site": "cross-site"}),
    ],
)
def test_a_form_of_somebody_else_changes_nothing(stage: Stage, more: dict[str, str], headers: dict[str, str]) -> None:
    with signed_in(stage, stage.author) as client:
        form = {"seal": seal_on(client.get("/agents").text), **more}
        assert client.post(f"{ECHO}/pause", data=form, headers=headers).status_code == 403
        assert not _paused(stage)


@pytest.mark.promise("U-10")
def test_a_form_of_another_visit_changes_nothing(stage: Stage) -> None:
    with signed_in(stage, stage.author) as client, signed_in(stage, stage.author) as other:
        foreign = seal_on(other.get("/agents").text)
        assert client.post(f"{ECHO}/pause", data={"seal": foreign}).status_code == 403
        assert not _paused(stage)
        own = {"seal": seal_on(client.get("/agents").text)}
        for act, then in (("pause", True), ("resume", False)):
            assert client.post(f"{ECHO}/{act}", data=own).status_code == 303
            assert _paused(stage) is then


@pytest.mark.promise("U-10")
def test_a_revoked_token_ends_its_sessions_at_once(stage: Stage) -> None:
    person = stage.world.person("acme:leaver", "viewer=acme")
    assert person.person is not None
    token, made = stage.world.cases.manage_tokens.make(OPERATOR, person.person.ref, "short", None)
    with signed_in(stage, person, token=token) as client:
        assert client.get("/agents").status_code == 200
        stage.world.cases.manage_tokens.revoke(OPERATOR, person.person.ref, made.name)
        assert client.get("/agents").headers["location"] == "/sign-in?next=%2Fagents"


@pytest.mark.promise("U-10")
def test_signing_out_ends_the_session_for_whoever_copied_its_cookie_and_no_other(stage: Stage) -> None:
    with signed_in(stage, stage.author) as client, signed_in(stage, stage.author) as elsewhere:
        copied = {"Cookie": f"studio-session={client.cookies['studio-session']}"}
        assert httpx.get(f"{stage.url}/agents", headers=copied).status_code == 200
        form = {"seal": seal_on(client.get("/agents").text)}
        assert client.post("/sign-out", data={"seal": "forged"}).status_code == 403
        assert httpx.get(f"{stage.url}/agents", headers=copied).status_code == 200
        assert client.post("/sign-out", data=form).headers["location"] == "/sign-in"
        for path in ("/agents", "/monitoring/live/rows"):
            assert httpx.get(stage.url + path, headers=copied).headers["location"].startswith("/sign-in")
        assert elsewhere.get("/agents").status_code == 200
        # Whoever has the token itself signs in as before.
        with signed_in(stage, stage.author) as again:
            assert again.get("/agents").status_code == 200


@pytest.mark.promise("U-10")
def test_a_session_that_was_not_signed_here_is_none(stage: Stage) -> None:
    claims = {"aud": "agentplat-studio", "sub": "0" * 64, "iat": 0, "exp": int(time.time()) + 60}
    forged = jwt.encode(claims, Ed25519PrivateKey.generate(), algorithm="EdDSA")
    unsigned = jwt.encode(claims, None, algorithm="none")
    for session in (forged, unsigned, "", "x", "a.b.c"):
        answer = httpx.get(f"{stage.url}/agents", headers={"Cookie": f"studio-session={session}"})
        assert answer.headers["location"].startswith("/sign-in")


@pytest.mark.promise("U-10")
@pytest.mark.parametrize(
    "following", ["https://elsewhere.example", "//elsewhere.example", "/\\elsewhere.example", "javascript:alert(1)"]
)
def test_signing_in_leads_nowhere_else(stage: Stage, following: str) -> None:
    with anybody(stage) as client:
        form = {"seal": seal_on(client.get("/sign-in").text), "token": stage.world.token(stage.author), "next": following}
        assert client.post("/sign-in", data=form).headers["location"] == "/"


@pytest.mark.promise("U-10")
def test_what_is_not_there_and_what_may_not_be_read_look_alike(stage: Stage) -> None:
    with signed_in(stage, stage.reader) as client:
        hidden, missing = (client.get(f"/agents/acme%2F{name}") for name in ("quality%3Atester", "quality%3Anobody"))
        assert hidden.status_code == missing.status_code == 404
        assert hidden.text.replace("tester", "nobody") == missing.text
        for path in ("/runs/77777/events", "/runs/77777/steps", "/runs/77777/trail.json", "/approvals/77777"):
            assert client.get(path).status_code == 404
