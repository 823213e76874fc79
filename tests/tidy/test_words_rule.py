"""The rules about words: vague names, TODO without an issue number, paths of one machine."""

import pytest

from checks.words import machine_paths, todo_without_issue, vague_names
from tests.tidy.planted import planted

TODO = "TO" + "DO"  # split, so that the rule does not find it here
HOME = "/" + "root/tailrace"


@pytest.mark.parametrize(
    "path", ["src/tailrace/log/utils.py", "src/tailrace/common/x.py", "docs/helpers.md", "tests/unit/test_util.py"]
)
def test_a_vague_file_name_is_found(path: str) -> None:
    assert len(vague_names(planted("", path))) == 1


@pytest.mark.parametrize("word", ["util", "utils", "helper", "helpers", "manager", "common"])
def test_every_banned_word_is_found(word: str) -> None:
    assert len(vague_names(planted(f"def the_{word}(): ..."))) == 1


@pytest.mark.parametrize("code", ["class LogManager: ...", "def common_part(): ...", "async def open_helper(): ..."])
def test_a_vague_definition_is_found(code: str) -> None:
    assert len(vague_names(planted(code))) == 1


def test_longer_words_that_contain_a_banned_word_are_allowed() -> None:
    assert (
        vague_names(planted("class Commonwealth: ...\ndef utility(): ...\nfrom contextlib import contextmanager")) == []
    )


@pytest.mark.parametrize("path", ["src/tailrace/log/x.py", "Makefile", "docs/x.md", ".ci/run"])
def test_a_todo_without_an_issue_is_found(path: str) -> None:
    (finding,) = todo_without_issue(planted(f"\n# {TODO}: later", path))
    assert finding.line == 2


@pytest.mark.parametrize(
    "text", [f"# {TODO} #12: later", f"# {TODO}(#12) later", f"# the word `{TODO}`", f"x = '{TODO}'"]
)
def test_a_todo_with_an_issue_or_the_quoted_word_is_allowed(text: str) -> None:
    assert todo_without_issue(planted(text)) == []


@pytest.mark.parametrize("path", ["src/tailrace/log/x.py", "docs/x.md", "Makefile"])
def test_a_path_of_one_machine_is_found(path: str) -> None:
    assert len(machine_paths(planted(f"# see {HOME}/log", path))) == 1


def test_paths_of_every_machine_are_allowed() -> None:
    assert machine_paths(planted("# /tmp/x /usr/bin ./work/x src/work/y https://host.example/work/")) == []
