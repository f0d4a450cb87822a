from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.openai_server import (
    Answer,
    OpenAIServer,
    chunk,
    events,
    fails,
    says,
    serving,
    streams,
)

COMMAND = [sys.executable, "-m", "sanderling"]
THOUGHT = "Thought: I multiply."
CODE = "<code>\nprint('working')\nfinal_answer(25 * 31)\n</code>"
ANSWERING = streams(f"{THOUGHT}\n", CODE)


def environment(**variables: str) -> dict[str, str]:
    # No key, no proxy and no local server of whoever runs the tests.
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**kept, "OLLAMA_HOST": f"127.0.0.1:{free_port()}", **variables}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def sanderling(
    *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        env=environment(**(env or {})),
        timeout=50,
    )


def at(server: OpenAIServer) -> list[str]:
    return ["--api-base", server.url, "--model-id", "scripted", "--api-key", "k"]


def test_a_task_is_solved_and_its_log_printed() -> None:
    with serving(ANSWERING) as server:
        done = sanderling("What is 25 times 31?", *at(server))
    assert done.stderr == ""
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert server.url in lines[0]
    assert " New run " in lines[1]
    assert "What is 25 times 31?" in lines[3]
    assert "OpenAIModel - scripted" in lines[5]
    told = [line for line in lines[6:] if not line.startswith(("━", "─"))]
    assert told[:6] == [
        THOUGHT,
        "print('working')",
        "final_answer(25 * 31)",
        "Execution logs:",
        "  working",
        "Out - Final answer: 775",
    ]
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("option", [["--quiet"], ["--verbosity-level", "-1"]])
def test_quiet_prints_the_bare_answer(option: list[str]) -> None:
    with serving(ANSWERING) as server:
        done = sanderling("What is 25 times 31?", *option, *at(server))
    assert (done.returncode, done.stdout, done.stderr) == (0, "775\n", "")


def test_errors_only_still_gives_the_answer() -> None:
    with serving(streams("<code>1 / 0</code>"), ANSWERING) as server:
        done = sanderling("What is 25 times 31?", "--verbosity-level", "0", *at(server))
    assert done.returncode == 0
    assert "ZeroDivisionError" in done.stdout
    assert done.stdout.endswith("\n775\n")
    assert "Step" not in done.stdout


def test_replies_can_be_asked_for_whole() -> None:
    with serving(says(f"{THOUGHT}\n{CODE}")) as server:
        done = sanderling("What is 25 times 31?", "--no-stream", *at(server))
    assert done.returncode == 0
    assert not server.requests[0].body.get("stream")
    assert "Out - Final answer: 775" in done.stdout


def test_the_agent_that_calls_tools() -> None:
    function = {"name": "final_answer", "arguments": '{"answer": "775"}'}
    call = {"id": "call_1", "type": "function", "function": function}
    with serving(says(None, "tool_calls", tool_calls=[call])) as server:
        options = ["--action-type", "tool_calling", "--no-stream", "--quiet"]
        done = sanderling("What is 25 times 31?", *options, *at(server))
    assert (done.stdout, done.stderr) == ("775\n", "")


def test_imports_can_be_allowed() -> None:
    code = "<code>import json\nfinal_answer(json.dumps([1]))</code>"
    with serving(streams(code)) as server:
        refused = sanderling("t", "--max-steps", "1", *at(server))
        allowed = sanderling("t", "--imports", "json", "--quiet", *at(server))
    assert "--imports json" in refused.stdout
    assert allowed.stdout == "[1]\n"


def test_code_can_run_in_this_process() -> None:
    with serving(ANSWERING) as server:
        done = sanderling("t", "--executor-type", "inprocess", "--quiet", *at(server))
    assert done.stdout == "775\n"


def test_the_task_comes_from_standard_input() -> None:
    with serving(ANSWERING) as server:
        done = sanderling("-", "--quiet", *at(server), stdin="The task\nin two lines\n")
    assert done.stdout == "775\n"
    assert "The task\\nin two lines" in str(server.requests[0].body)


def test_a_run_out_of_steps_is_status_2() -> None:
    with serving(streams("<code>1 / 0</code>"), says("I guess 7.")) as server:
        done = sanderling("t", "--max-steps", "1", "--quiet", *at(server))
    assert (done.returncode, done.stdout) == (2, "I guess 7.\n")
    assert "the 1 steps were used up" in done.stderr.replace("\n", " ")


def test_no_task_is_a_usage_error() -> None:
    done = sanderling()
    assert done.returncode == 2
    assert done.stdout == ""
    assert "there is no task" in done.stderr


def test_a_hostile_answer_steers_no_terminal_but_reaches_a_program_as_it_is() -> None:
    hostile = "<code>final_answer('[b]\\x1b]0;pwned\\x07\\ud800')</code>"
    with serving(streams(hostile)) as server:
        logged = sanderling("t", *at(server))
        bare = sanderling("t", "--quiet", *at(server))
    assert "Out - Final answer: [b]\\x1b]0;pwned\\x07\\ud800" in logged.stdout
    assert "\x1b" not in logged.stdout
    assert bare.stdout == "[b]\x1b]0;pwned\x07\\ud800\n"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (fails(401, "Incorrect API key"), "key"),
        (fails(404, "no such model"), "scripted"),
        (fails(400, "no such parameter"), "no such parameter"),
    ],
)
def test_what_a_server_refuses_is_one_clear_paragraph(answer: Answer, said: str) -> None:
    with serving(answer) as server:
        done = sanderling("t", *at(server))
    assert_failed(done, said)


def test_a_server_that_is_down() -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    done = sanderling("t", "--api-base", url, "--model-id", "m", "--api-key", "k")
    assert_failed(done, url)


def test_asking_again_is_told_on_standard_error() -> None:
    busy = fails(503, "[b]busy\x1b[2J\nsanderling: all is well", retry_after="0")
    with serving(busy, busy, ANSWERING) as server:
        done = sanderling("What is 25 times 31?", *at(server))
    assert "Out - Final answer: 775" in done.stdout
    assert "busy" not in done.stdout
    first, second = done.stderr.splitlines()
    assert first.startswith("sanderling: Attempt 1 of 5 failed, the next one is in 0.0 s: ")
    assert "[b]busy\\x1b[2J sanderling: all is well" in first
    assert second.startswith("sanderling: Attempt 2 of 5 failed")


@pytest.mark.parametrize("option", ["--quiet", "--verbosity-level=0"])
def test_asking_again_is_not_told_where_only_errors_are(option: str) -> None:
    with serving(fails(503, "busy", retry_after="0"), ANSWERING) as server:
        done = sanderling("What is 25 times 31?", option, *at(server))
    assert done.stdout.endswith("775\n")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model-path", "/no/such/file.gguf"], "/no/such/file.gguf"),
        (["--model-path", __file__], "GGUF"),
        (["--model-type", "NoSuchModel"], "NoSuchModel"),
    ],
)
def test_a_model_that_is_not_there(arguments: list[str], said: str) -> None:
    assert_failed(sanderling("t", *arguments), said)


def assert_failed(done: subprocess.CompletedProcess[str], said: str) -> None:
    assert done.returncode == 1
    assert done.stderr.startswith("sanderling: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr


def test_debugging_shows_the_traceback() -> None:
    with serving(fails(401, "Incorrect API key")) as server:
        done = sanderling("t", *at(server), env={"SANDERLING_DEBUG": "1"})
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_ctrl_c_ends_a_run_that_waits() -> None:
    begun = events([chunk({"content": "Let me see.\nIt is"})], end="", stall=True)
    with serving(begun) as server:
        process = subprocess.Popen(
            [*COMMAND, "t", *at(server)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        with process:
            assert process.stdout is not None
            while process.stdout.readline() != "Let me see.\n":
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == "Interrupted.\n"


def test_a_reader_that_goes_away_leaves_no_traceback() -> None:
    with serving(ANSWERING) as server:
        process = subprocess.Popen(
            [*COMMAND, "t", *at(server)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        with process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.stderr is not None
            assert process.stderr.read() == ""
    assert process.returncode == 1


def test_a_terminal_gets_colours() -> None:
    ours, theirs = pty.openpty()
    with serving(ANSWERING) as server:
        process = subprocess.Popen(
            [*COMMAND, "What is 25 times 31?", *at(server)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment(TERM="xterm-256color", COLORTERM="truecolor", COLUMNS="100"),
        )
        os.close(theirs)
        seen = read_all(ours)
        assert process.wait(30) == 0
    assert "\x1b[1;38;2;212;183;2mOut - Final answer: 775\x1b[0m" in seen
    assert THOUGHT in seen


def read_all(terminal: int) -> str:
    seen = b""
    try:
        while data := os.read(terminal, 4096):
            seen += data
    except OSError:
        pass  # how Linux tells the end of a pseudo-terminal
    finally:
        os.close(terminal)
    return seen.decode()


def test_the_embedded_model_needs_nothing(tmp_path: Path) -> None:
    done = sanderling("What is 25 times 31?", env={"HOME": str(tmp_path)})
    assert done.returncode == 0
    assert "LlamaCppModel" in done.stdout
    assert "135M parameters: shows that everything works" in done.stdout
    assert "Out - Final answer: 775" in done.stdout
    assert done.stderr == ""


def test_the_embedded_model_calls_tools() -> None:
    done = sanderling("--action-type", "tool_calling", "--quiet", "What is the capital of France?")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
