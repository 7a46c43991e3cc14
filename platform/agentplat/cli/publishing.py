"""agentplat publish, preview, retire, pause, resume and schema: through the HTTP API, but for the schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agentplat.cli.outcomes import Exit, FailOn, Format, show, with_progress
from agentplat.cli.remote import Remote, agent_path
from agentplat.domain.errors import InvalidInput, Violation
from agentplat.domain.languages import Language
from agentplat.usecases.names import check_manifests, manifest_schema

Connect = Callable[[str | None, Path | None], Remote]
"""Opens the server of --server and --token-file, or of the settings where they are not given."""

Files = Annotated[list[Path], typer.Argument(help="Manifests in YAML; one file may hold several.", show_default=False)]
Server = Annotated[str | None, typer.Option(help="Address of the server [default: setting server_url]", show_default=False)]
TokenFile = Annotated[Path | None, typer.Option(help="File with your token [default: setting token_file]", show_default=False)]
Tongue = Annotated[Language, typer.Option(help="Language of the warning.")]
Form = Annotated[Format, typer.Option("--format", help="How the answer is printed.")]
AgentName = Annotated[str, typer.Argument(help="SCOPE:NAME, such as acme/platform:developer", show_default=False)]


def _read(files: list[Path]) -> list[tuple[str, str]]:
    """Names and texts of the files, all of them checked, so that one faulty file keeps the others back too."""
    texts: list[tuple[str, str]] = []
    faults: list[Violation] = []
    for file in files:
        try:
            texts.append((str(file), file.read_text(encoding="utf-8")))
            check_manifests(texts[-1][1], str(file))
        except InvalidInput as error:
            faults.extend(error.violations)
        except OSError as error:
            reason = f"cannot be read: {error.strerror}"
            faults.append(Violation(field=str(file), reason=reason, remedy="name a file with manifests"))
        except UnicodeDecodeError as error:
            reason = f"is not UTF-8 at byte {error.start + 1}"
            faults.append(Violation(field=str(file), reason=reason, remedy="save it as UTF-8"))
    if faults:
        raise InvalidInput(faults)
    return texts


def _published_text(version: Mapping[str, Any]) -> str:
    done = "published" if version["created"] else "is current already; nothing was stored"
    return "\n".join(filter(None, [f"{version['agent']} version {version['version']} {done}", version["text"]]))


def _change_lines(kind: str, change: Mapping[str, list[str]]) -> list[str]:
    return [f"+ {kind} {name}" for name in change["added"]] + [f"- {kind} {name}" for name in change["removed"]]


def _preview_text(preview: Mapping[str, Any]) -> str:
    diff = preview["diff"]
    against = "a first version" if diff["against"] is None else f"against version {diff['against']}"
    lines = [f"{preview['agent']} {against}"]
    lines += _change_lines("event", diff["events"]) + _change_lines("trigger", diff["triggers"])
    lines += [preview["text"]] if preview["text"] else []
    lines += [suggestion["text"] for suggestion in preview["suggestions"] if suggestion["text"]]
    return "\n".join(lines)


def preview_exit(previews: list[Mapping[str, Any]], fail_on: FailOn) -> Exit:
    """The exit status of a preview: no answer, then not fully verified, then findings (O-2)."""
    reports = [preview["report"] for preview in previews]
    if any(report is None for report in reports):
        return Exit.NO_ANSWER
    if any(report["verification"] in ("walk_limited", "not_verified") for report in reports):
        return Exit.NOT_VERIFIED
    loops = [loop for report in reports for loop in report["loops"]]
    levels = {
        FailOn.LOOP: any(not loop["self"] for loop in loops),
        FailOn.SELF: bool(loops),
        FailOn.NOTICE: bool(loops) or any(report["notices"] for report in reports),
    }
    return Exit.FINDINGS if levels.get(fail_on, False) else Exit.FINE


def register(app: typer.Typer, connect: Connect) -> None:
    """Add the commands to an app."""
    _register_publish(app, connect)
    _register_preview(app, connect)
    _register_acts(app, connect)

    @app.command()
    def schema() -> None:
        """Print the JSON Schema of a manifest.

        Example: agentplat schema > manifest.schema.json
        """
        print(json.dumps(manifest_schema(), indent=2, ensure_ascii=False))


def _register_publish(app: typer.Typer, connect: Connect) -> None:
    @app.command()
    def publish(
        files: Files,
        server: Server = None,
        token_file: TokenFile = None,
        language: Tongue = Language.EN,
        form: Form = Format.TEXT,
        expected_version: Annotated[
            int | None, typer.Option(min=1, help="Publish only if the new version gets this number.", show_default=False)
        ] = None,
    ) -> None:
        """Publish versions of agents and tell which loops they close. A loop is a warning: the version is published all the same.

        Example: agentplat publish developer.yaml reviewer.yaml --token-file .data/admin.token
        """
        texts = _read(files)
        with connect(server, token_file) as remote:
            for source, text in with_progress(texts, "publishing"):
                answer = remote.post(
                    "/v1/agents:publish",
                    {"manifest": text, "source": source},
                    language=language.value,
                    expected_version=expected_version,
                )
                for version in answer["versions"]:
                    show(version, _published_text(version), form)


def _register_preview(app: typer.Typer, connect: Connect) -> None:
    @app.command()
    def preview(
        files: Files,
        server: Server = None,
        token_file: TokenFile = None,
        language: Tongue = Language.EN,
        form: Form = Format.TEXT,
        fail_on: Annotated[FailOn, typer.Option(help="The least finding that ends with status 1.")] = FailOn.NEVER,
    ) -> None:
        """Tell what publishing would: loops, what changes against the current version, what to write in listeners.

        Example: agentplat preview developer.yaml --language pt --token-file .data/admin.token
        """
        found: list[Mapping[str, Any]] = []
        texts = _read(files)
        with connect(server, token_file) as remote:
            for source, text in with_progress(texts, "previewing"):
                answer = remote.post("/v1/agents:preview", {"manifest": text, "source": source}, language=language.value)
                for shown in answer["previews"]:
                    show(shown, _preview_text(shown), form)
                    found.append(shown)
        raise typer.Exit(preview_exit(found, fail_on))


def _register_acts(app: typer.Typer, connect: Connect) -> None:
    @app.command()
    def retire(agent: AgentName, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Take an agent out of service and out of the graph; publishing a version brings it back.

        Example: agentplat retire acme/platform:developer --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            answer = remote.post(agent_path(agent, "retire"))
        known = "" if answer["delivered"] else "; the graph service did not answer and will be told later"
        done = "retired" if answer["created"] else "was retired already"
        show(answer, f"{answer['agent']} {done}{known}", form)

    @app.command()
    def pause(agent: AgentName, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Keep an agent in the graph but let its triggers start nothing.

        Example: agentplat pause acme/platform:developer --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            answer = remote.post(agent_path(agent, "pause"))
        show(answer, f"{answer['agent']} {'paused' if answer['changed'] else 'was paused already'}", form)

    @app.command()
    def resume(agent: AgentName, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Let the triggers of a paused agent start it again.

        Example: agentplat resume acme/platform:developer --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            answer = remote.post(agent_path(agent, "resume"))
        show(answer, f"{answer['agent']} {'resumed' if answer['changed'] else 'was not paused'}", form)
