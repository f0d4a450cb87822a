"""What models warn of: to the logger, and to the console of whoever waits."""

from __future__ import annotations

import io
import logging
import subprocess
import sys

import pytest

from console.screen import Screen
from sanderling import CodeAgent, LogLevel, OpenAIModel
from sanderling._warn import warn
from sanderling.models import FallbackModel
from support.doors import HELLO
from support.drivers import Driver, both_drivers
from support.openai_server import fails, says, serving, streams

CODE = "<code>\nfinal_answer(42)\n</code>"
BUSY = fails(503, "busy,\nvery busy", retry_after="0")


def answer_the_second_time(screen: Screen) -> None:
    with serving(BUSY, says(CODE)) as server:
        model = OpenAIModel("m", server.url, "key")
        CodeAgent([], model, logger=screen.logger).run("What is it?")


@both_drivers
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_run_tells_on_its_console_that_the_model_is_asked_again(
    driver: Driver, streamed: bool
) -> None:
    screen = Screen(width=400)
    answer = streams(CODE) if streamed else says(CODE)
    with serving(BUSY, BUSY, answer) as server:
        model = OpenAIModel("m", server.url, "key")
        with CodeAgent([], model, logger=screen.logger, stream_outputs=streamed) as agent:
            assert driver.run(agent, "What is it?") == 42
    told = [line for line in screen.text.splitlines() if "failed, the next one" in line]
    assert ["Attempt 1 of 5" in told[0], "Attempt 2 of 5" in told[1], len(told)] == [True, True, 2]
    assert "busy, very busy" in told[0]


def test_it_is_not_told_where_only_errors_are() -> None:
    screen = Screen(LogLevel.ERROR)
    answer_the_second_time(screen)
    assert "Attempt" not in screen.text


def test_a_handler_of_the_program_takes_the_place_of_the_console() -> None:
    screen, written = Screen(), io.StringIO()
    handler = logging.StreamHandler(written)
    log = logging.getLogger("sanderling")
    log.addHandler(handler)
    try:
        answer_the_second_time(screen)
    finally:
        log.removeHandler(handler)
    assert "Attempt 1 of 5" in written.getvalue()
    assert "Attempt" not in screen.text


def test_the_next_model_is_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with serving(fails(503, "busy,\nvery busy"), says("Hi")) as server:
        models = [OpenAIModel(name, server.url, "key", retry=False) for name in "ab"]
        assert FallbackModel(models).generate(HELLO).text == "Hi"
    (record,) = caplog.records
    assert record.getMessage().startswith("OpenAIModel 'a' failed, asking the next model: ")
    assert "\n" not in record.getMessage()


def test_a_program_that_has_not_set_up_logging_prints_nothing() -> None:
    code = "from sanderling._warn import warn; warn('busy')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_no_record_of_the_log_steers_the_terminal(caplog: pytest.LogCaptureFixture) -> None:
    warn("503: \x1b]0;owned\x07,\nuser\u202enimda")
    assert caplog.messages == ["503: \\x1b]0;owned\\x07, user\\u202enimda"]
