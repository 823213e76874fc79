"""The size rule: a file or function one line over its bound is found, one at its bound is not."""

from checks.sizes import FILE_MAX_LINES, FUNCTION_MAX_LINES, too_large
from checks.tree import Source
from tests.tidy.planted import planted


def file_of(lines: int) -> Source:
    return planted("x = 1\n" * lines, "src/tailrace/log/planted.py")


def function_of(lines: int) -> Source:
    return planted("def f():\n" + "    x = 1\n" * (lines - 1))


def test_a_file_over_the_bound_is_found() -> None:
    assert too_large([file_of(FILE_MAX_LINES)]) == []
    (finding,) = too_large([file_of(FILE_MAX_LINES + 1)])
    assert finding.path == "src/tailrace/log/planted.py"
    assert f"{FILE_MAX_LINES + 1} lines; at most {FILE_MAX_LINES}" in finding.wrong


def test_a_function_over_the_bound_is_found_with_its_line() -> None:
    assert too_large([function_of(FUNCTION_MAX_LINES)]) == []
    (finding,) = too_large([function_of(FUNCTION_MAX_LINES + 1)])
    assert (finding.line, finding.wrong.startswith("f has")) == (1, True)


def test_a_docstring_does_not_count() -> None:
    long_docstring = (
        "def f():\n" + '    """Why,\n' + "    at length.\n" * FUNCTION_MAX_LINES + '    """\n    return 1\n'
    )
    assert too_large([planted(long_docstring)]) == []
