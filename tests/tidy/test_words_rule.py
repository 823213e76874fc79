"""Empty names, promises without an issue, paths of somebody's machine."""

import pytest

from checks.words import empty_names, machine_paths, promises
from tests.tidy.planted import planted

PROMISE = "TO" + "DO"  # in two halves, or the rule would find it here
HOME = "/" + "root/tailrace"


@pytest.mark.parametrize(
    "path", ["src/tailrace/log/utils.py", "src/tailrace/common/x.py", "docs/helpers.md", "tests/unit/test_util.py"]
)
def test_a_file_called_for_nothing_is_seen(path: str) -> None:
    assert len(empty_names(planted("", path))) == 1


@pytest.mark.parametrize("word", ["util", "utils", "helper", "helpers", "manager", "common"])
def test_every_empty_word_is_seen(word: str) -> None:
    assert len(empty_names(planted(f"def the_{word}(): ..."))) == 1


@pytest.mark.parametrize("code", ["class LogManager: ...", "def common_part(): ...", "async def open_helper(): ..."])
def test_a_definition_called_for_nothing_is_seen(code: str) -> None:
    assert len(empty_names(planted(code))) == 1


def test_words_that_only_contain_one_are_fine() -> None:
    assert (
        empty_names(planted("class Commonwealth: ...\ndef utility(): ...\nfrom contextlib import contextmanager")) == []
    )


@pytest.mark.parametrize("path", ["src/tailrace/log/x.py", "Makefile", "docs/x.md", ".ci/run"])
def test_a_promise_without_an_issue_is_seen(path: str) -> None:
    (finding,) = promises(planted(f"\n# {PROMISE}: later", path))
    assert finding.line == 2


@pytest.mark.parametrize(
    "text", [f"# {PROMISE} #12: later", f"# {PROMISE}(#12) later", f"# the word `{PROMISE}`", f"x = '{PROMISE}'"]
)
def test_a_promise_with_an_issue_or_the_mere_word_is_fine(text: str) -> None:
    assert promises(planted(text)) == []


@pytest.mark.parametrize("path", ["src/tailrace/log/x.py", "docs/x.md", "Makefile"])
def test_a_path_of_one_machine_is_seen(path: str) -> None:
    assert len(machine_paths(planted(f"# see {HOME}/log", path))) == 1


def test_paths_that_every_machine_has_are_fine() -> None:
    assert machine_paths(planted("# /tmp/x /usr/bin ./work/x src/work/y https://host.example/work/")) == []
