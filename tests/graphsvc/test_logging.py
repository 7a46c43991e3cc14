"""The form of the log."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from graphsvc.telemetry import configure_logging


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def fail() -> None:
    raise ValueError("the cause")


@pytest.mark.promise("O-6")
def test_every_line_is_json_whoever_wrote_it(capsys: pytest.CaptureFixture[str]):
    configure_logging("info", "json")
    structlog.get_logger().info("call", method="GetStatus", caller="אדה")
    logging.getLogger("a.library").warning("odd: %s", 7)
    logging.getLogger("a.library").info("chatter")
    try:
        fail()
    except ValueError as error:
        structlog.get_logger().error("fault", exc_info=error)
    ours, theirs, fault = map(json.loads, capsys.readouterr().err.splitlines())
    assert (ours["event"], ours["level"], ours["method"], ours["caller"]) == ("call", "info", "GetStatus", "אדה")
    assert (theirs["event"], theirs["level"]) == ("odd: 7", "warning")
    assert "ValueError: the cause" in fault["exception"]
    assert ours["timestamp"].endswith("Z")


def test_lines_below_the_level_are_left_out(capsys: pytest.CaptureFixture[str]):
    configure_logging("warning", "json")
    structlog.get_logger().info("call")
    structlog.get_logger().warning("odd")
    assert [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()] == ["odd"]


def test_the_log_may_be_text_for_a_terminal(capsys: pytest.CaptureFixture[str]):
    configure_logging("info", "text")
    structlog.get_logger().info("call", method="GetStatus")
    try:
        fail()
    except ValueError as error:
        structlog.get_logger().error("fault", exc_info=error)
    told = capsys.readouterr().err
    assert "call" in told
    assert "method=GetStatus" in told
    assert "ValueError: the cause" in told
