"""`tailrace.local.process_log`: the whole log in a file, or the lines as they are written."""

import subprocess
import sys
from pathlib import Path

import pytest

from tailrace.local.process_log import LOG_TAIL_LINES, LogFile, LogLines, ProcessLog, last_lines

WRITES = "import sys\nfor number in range(int(sys.argv[1])): print('line', number, file=sys.stderr)"


def write_to(log: ProcessLog, lines: int) -> None:
    """As a broker writes: from a process, to its standard error."""
    with log.open() as file:
        subprocess.run([sys.executable, "-c", WRITES, str(lines)], stderr=file, check=True)


def test_a_file_keeps_the_log_of_all_starts(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "log")
    assert log.text() == ""
    write_to(log, 2)
    write_to(log, 1)
    assert log.text() == "line 0\nline 1\nline 0\n"


@pytest.mark.parametrize("fails", [False, True])
def test_lines_are_passed_on_and_the_last_are_kept(fails: bool) -> None:
    """Also when the terminal that they are printed to is gone."""
    got: list[str] = []

    def on_line(line: str) -> None:
        got.append(line)
        if fails:
            raise BrokenPipeError

    log = LogLines(on_line)
    write_to(log, LOG_TAIL_LINES + 5)
    assert log.text().splitlines() == got[-LOG_TAIL_LINES:]
    assert got == [f"line {number}" for number in range(LOG_TAIL_LINES + 5)]


def test_the_end_of_a_log_follows_a_sentence() -> None:
    assert last_lines("") == " Its log is empty."
    assert last_lines("one\ntwo\n") == "\nIts log ends:\n  one\n  two"
    assert len(last_lines("line\n" * 100).splitlines()) == LOG_TAIL_LINES + 2
