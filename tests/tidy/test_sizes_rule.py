"""Sizes are held where they are, or smaller: bounds are seen when crossed, and only ever fall."""

import tomllib
from pathlib import Path

from checks.sizes import Bounds, function_sizes, measures, outgrown, parts, read_bounds, tightened, written
from checks.tree import Source
from tests.tidy.planted import planted

wide: Bounds = {part: {measure.name: 1000 for measure in measures} for part in parts}


def bounds(**of_src: int) -> Bounds:
    return wide | {"src": wide["src"] | of_src}


def file_of(lines: int, name: str = "a") -> Source:
    return planted("x = 1\n" * lines, f"src/tailrace/log/{name}.py")


def function_of(lines: int) -> Source:
    return planted("def f():\n" + "    x = 1\n" * (lines - 1))


def test_a_file_that_grew_is_seen_by_name() -> None:
    files = [file_of(10, "a"), file_of(11, "b")]
    (finding,) = outgrown(files, bounds(file_max=10))
    assert finding.path == "src/tailrace/log/b.py"
    assert "11 lines; the most is 10" in finding.wrong
    assert outgrown(files, bounds(file_max=11)) == []


def test_a_function_that_grew_is_seen_where_it_stands() -> None:
    (finding,) = outgrown([function_of(7)], bounds(function_max=6))
    assert (finding.line, "f has 7 lines" in finding.wrong) == (1, True)


def test_a_median_that_grew_is_seen() -> None:
    files = [file_of(size, f"f{size}") for size in (1, 20, 30)]
    assert outgrown(files, bounds(file_median=20)) == []
    assert len(outgrown([*files, file_of(40, "g")], bounds(file_median=20))) == 1


def test_a_docstring_does_not_count() -> None:
    (size,) = function_sizes([planted('def f():\n    """Why,\n\n    at length."""\n    return 1')])
    assert size.lines == 2


def test_tightening_lowers_and_never_raises() -> None:
    lower = tightened([file_of(30), function_of(7)], bounds(function_max=5))
    assert lower["src"]["file_max"] == 30
    assert lower["src"]["file_p90"] == 50  # the next step of 25
    assert lower["src"]["function_max"] == 5
    assert lower["tests"] == wide["tests"]  # nothing there, so nothing learnt


def test_what_tightening_writes_is_what_the_rule_reads(tmp_path: Path) -> None:
    assert tomllib.loads(written(wide)) == wide
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks/sizes.toml").write_text(written(wide))
    assert read_bounds(tmp_path) == wide
