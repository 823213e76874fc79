"""A ratchet on sizes: files and functions are as small as they were, or smaller.

checks/sizes.toml holds, for each part of the tree, the largest, the 90th percentile and the median that are allowed.
`make tighten` lowers each bound to what the tree holds now and raises none. The largest are exact; medians and
percentiles are kept to a step above, since one new file moves them and nobody can plan for that.
A function is measured without its docstring, which is never too long.
"""

import ast
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from checks.finding import Finding
from checks.tree import Source, sources

bounds_file: Final = "checks/sizes.toml"
parts: Final = {"src": ("src/",), "tests": ("tests/",), "tools": ("checks/", "benchmarks/", "examples/")}
split: Final = (
    "Split what grew where its theory divides; the bounds in checks/sizes.toml only ever fall (`make tighten`)."
)
opening: Final = """\
# The sizes that files and functions may have, in lines; see checks/sizes.py.
# Written by `make tighten`, which only lowers them. To raise one is a decision: it needs an ADR.
"""


class Size(NamedTuple):
    lines: int
    path: str
    line: int
    name: str


Bounds = dict[str, dict[str, int]]  # part to measure to lines


def file_sizes(files: Sequence[Source]) -> list[Size]:
    return [Size(source.text.count("\n"), source.path, 0, "this file") for source in files if source.text.strip()]


def function_sizes(files: Sequence[Source]) -> list[Size]:
    return [size for source in files for size in _functions(source)]


def _functions(source: Source) -> Iterator[Size]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            explained = node.body[0] if ast.get_docstring(node, clean=False) is not None else None
            yield Size(_length(node) - (_length(explained) if explained else 0), source.path, node.lineno, node.name)


def _length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def share(sizes: Sequence[Size], part: float) -> Size:
    """The size below which `part` of all sizes lie."""
    return sorted(sizes)[min(len(sizes) - 1, int(len(sizes) * part))]


class Measure(NamedTuple):
    name: str
    sizes: Callable[[Sequence[Source]], list[Size]]
    part: float
    step: int  # a bound is a multiple of it


measures: Final = (
    Measure("file_max", file_sizes, 1.0, 1),
    Measure("file_p90", file_sizes, 0.9, 25),
    Measure("file_median", file_sizes, 0.5, 25),
    Measure("function_max", function_sizes, 1.0, 1),
    Measure("function_p90", function_sizes, 0.9, 4),
    Measure("function_median", function_sizes, 0.5, 2),
)


def measured(files: Sequence[Source], prefixes: tuple[str, ...], measure: Measure) -> list[Size]:
    """Those of one part of the tree, for one measure."""
    return measure.sizes([source for source in files if source.is_python and source.path.startswith(prefixes)])


def outgrown(files: Sequence[Source], bounds: Bounds) -> list[Finding]:
    found = []
    for part, prefixes in parts.items():
        for measure in measures:
            sizes, bound = measured(files, prefixes, measure), bounds[part][measure.name]
            if measure.part == 1.0:
                over = [size for size in sizes if size.lines > bound]
                found += [
                    Finding(s.path, s.line, f"{s.name} has {s.lines} lines; the most is {bound}", split) for s in over
                ]
            elif sizes and (middle := share(sizes, measure.part)).lines > bound:
                what = f"{measure.name} of {part} is {middle.lines} lines; the most is {bound}"
                found.append(Finding(prefixes[0], 0, what, split))
    return found


def tightened(files: Sequence[Source], bounds: Bounds) -> Bounds:
    """The same bounds, each lowered to what the tree needs; none raised."""
    lower: Bounds = {}
    for part, prefixes in parts.items():
        lower[part] = dict(bounds[part])
        for measure in measures:
            if sizes := measured(files, prefixes, measure):
                needed = -(-share(sizes, measure.part).lines // measure.step) * measure.step
                lower[part][measure.name] = min(bounds[part][measure.name], needed)
    return lower


def read_bounds(root: Path) -> Bounds:
    return tomllib.loads((root / bounds_file).read_text())


def written(bounds: Bounds) -> str:
    tables = [
        f"\n[{part}]\n" + "".join(f"{name} = {lines}\n" for name, lines in bounds[part].items()) for part in parts
    ]
    return opening + "".join(tables)


def main(arguments: list[str]) -> int:
    root = Path.cwd()
    if arguments != ["--tighten"]:
        print("usage: python -m checks.sizes --tighten", file=sys.stderr)
        return 2
    bounds = read_bounds(root)
    lower = tightened(sources(root), bounds)
    (root / bounds_file).write_text(written(lower))
    for part, measures_of_part in lower.items():
        for name, lines in measures_of_part.items():
            if lines < bounds[part][name]:
                print(f"{part}.{name}: {bounds[part][name]} → {lines}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
