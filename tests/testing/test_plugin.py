"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TEST = """
    from sanderling.models import ScriptedModel

    def say(model, *texts):
        return [model.generate([{{"role": "user", "content": text}}]).text for text in texts]

    def real():
        {real}

    def test_run(recorded_model):
        assert say(recorded_model(real), {texts}) == {replies}
"""
TWO = "return ScriptedModel(['one', 'two'])"
NONE = "raise RuntimeError('asked for the real model')"


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # those take a second a run
    return Run(pytester)


class Run:
    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        pytester.makeconftest('pytest_plugins = ["sanderling.testing.plugin"]')

    def __call__(self, texts: str, replies: str, real: str, *options: str) -> str:
        self.pytester.makepyfile(test_it=TEST.format(real=real, texts=texts, replies=replies))
        result = self.pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
        return "\n".join(result.outlines)

    @property
    def recordings(self) -> list[str]:
        return sorted(path.name for path in (self.pytester.path / "recordings").iterdir())


def test_recorded_once_replayed_offline(run: Run) -> None:
    said = "'a', 'b'", "['one', 'two']"
    assert "1 passed" in run(*said, TWO, "--record-models")
    assert run.recordings == ["test_it.test_run.jsonl"]
    assert "1 passed" in run(*said, NONE)
    assert "1 passed" in run(*said, NONE)


def test_a_missing_recording_names_the_command(run: Run) -> None:
    out = run("'a'", "['one']", NONE)
    assert "1 failed" in out
    assert "pytest --record-models 'test_it.py::test_run'" in out


def test_the_first_divergence_is_shown(run: Run) -> None:
    run("'a', 'b'", "['one', 'two']", TWO, "--record-models")
    out = run("'a', 'changed'", "['one', 'two']", NONE)
    assert "1 failed" in out
    assert re.search(r'-\s+"content": "b"', out)
    assert re.search(r'\+\s+"content": "changed"', out)


def test_replies_that_are_left_over_fail_the_test(run: Run) -> None:
    run("'a', 'b'", "['one', 'two']", TWO, "--record-models")
    out = run("'a'", "['one']", NONE)
    assert "1 replies recorded" in out
    assert "1 error" in out
    out = run("'a'", "['wrong']", NONE)
    assert "1 failed" in out
    assert "were not asked for" not in out


def test_names_of_parametrized_tests_become_file_names(run: Run) -> None:
    run.pytester.makepyfile(
        test_it="""
        import pytest
        from sanderling.models import ScriptedModel

        @pytest.mark.parametrize("path", ["../../a b"])
        def test_run(recorded_model, path):
            for text in ("one", "two"):
                model = recorded_model(lambda: ScriptedModel([text]))
                model.generate([{"role": "user", "content": "x"}])
        """
    )
    run.pytester.runpytest_subprocess("-p", "no:cacheprovider", "--record-models")
    names = [re.sub("-[0-9a-f]{8}", "-…", name) for name in run.recordings]
    assert names == ["test_it.test_run_.._.._a_b-….2.jsonl", "test_it.test_run_.._.._a_b-….jsonl"]
    assert not list(Path(run.pytester.path).glob("*.jsonl"))


MANY = """
    import pytest
    from sanderling.models import ScriptedModel

    def say(model):
        return model.generate([{"role": "user", "content": "Hello"}]).text

    class TestOne:
        def test_run(self, recorded_model):
            assert say(recorded_model(lambda: ScriptedModel(["one"]))) == "one"

    class TestTwo:
        def test_run(self, recorded_model):
            assert say(recorded_model(lambda: ScriptedModel(["two"]))) == "two"

    @pytest.mark.parametrize("name", ["a/b", "a_b", "a b"])
    def test_named(recorded_model, name):
        assert say(recorded_model(lambda: ScriptedModel([name]))) == name
"""


def test_each_test_has_recordings_of_its_own(run: Run) -> None:
    run.pytester.makepyfile(test_it=MANY)
    for options in (["--record-models"], []):
        result = run.pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
        result.assert_outcomes(passed=5)
    assert "test_it.TestOne.test_run.jsonl" in run.recordings
    assert "test_it.test_named_a_b.jsonl" in run.recordings


OBJECTS = """
    from PIL import Image
    from sanderling import CodeAgent, ScriptedModel

    class Client:
        pass

    def shifted(number):
        return number + 1

    def test_run(recorded_model):
        replies = ["<code>[client, photo, shifted]</code>", "<code>final_answer(shifted(1))</code>"]
        given = {"client": Client(), "photo": Image.new("L", (2, 3)), "shifted": shifted}
        made = CodeAgent([], recorded_model(lambda: ScriptedModel(replies)), verbosity_level=0)
        with made:
            assert made.run("Go.", additional_args=given) == 2
"""


def test_a_run_with_objects_is_replayed(run: Run) -> None:
    run.pytester.makepyfile(test_it=OBJECTS)
    for options in (["--record-models"], [], []):
        result = run.pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
        result.assert_outcomes(passed=1)
    (recording,) = (run.pytester.path / "recordings").iterdir()
    assert "<function shifted(number)>" in recording.read_text()
    assert " at 0x" not in recording.read_text()
