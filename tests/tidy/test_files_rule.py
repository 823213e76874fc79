"""The rules about whole files, and which files count."""

import subprocess
from pathlib import Path

import pytest

from checks.files import FILE_MAX_BYTES, file_too_large, missing_docstring, untidy_whitespace
from checks.tree import Source, sources
from tests.tidy.planted import planted


def test_a_large_file_is_found() -> None:
    assert file_too_large(Source("x.bin", bytes(FILE_MAX_BYTES + 1)))
    assert file_too_large(Source("x.bin", bytes(FILE_MAX_BYTES))) == []


@pytest.mark.parametrize("text", ["a\tb\n", "a \n", "a\n\n  \n", "a"])
def test_untidy_whitespace_is_found(text: str) -> None:
    assert len(untidy_whitespace(Source("docs/x.md", text.encode()))) == 1


def test_tidy_prose_and_other_files_are_fine() -> None:
    assert untidy_whitespace(Source("docs/x.md", b"# A\n\n    code\n")) == []
    assert untidy_whitespace(Source("Makefile", b"a:\n\techo\n")) == []


def test_a_module_without_docstring_is_found() -> None:
    assert missing_docstring(planted("import struct"))
    assert missing_docstring(planted("", "src/tailrace/log/__init__.py"))
    assert missing_docstring(planted('"""Why."""')) == []
    assert missing_docstring(planted("", "tests/unit/test_x.py")) == []


def test_new_files_count_and_ignored_ones_do_not(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    for name in (".gitignore", "new.py", "left.log", "Ünïcode.md"):
        (tmp_path / name).write_text("*.log\n")
    assert [source.path for source in sources(tmp_path)] == [".gitignore", "new.py", "Ünïcode.md"]


def test_without_git_all_but_caches_count(tmp_path: Path) -> None:
    for name in ("a.py", ".venv/b.py", "src/__pycache__/c.py", "src/d.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [source.path for source in sources(tmp_path)] == ["a.py", "src/d.py"]
