"""The archive of Spark's classes: made once, used by the next session, and removed with the environment it was for."""

import os
import sys
from pathlib import Path

import pytest

from tailrace.pipeline.jvm.class_archive import remove_stale_archives
from tests.pipeline.programs import root, run

SESSION = "from tailrace.pipeline import session; session(master='local[1]', keep_classes=False).stop()"


@pytest.mark.long
def test_it_is_made_once_and_the_next_session_takes_its_classes_from_it(tmp_path: Path) -> None:
    loaded = tmp_path / "loaded"
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    for _ in range(2):
        run([sys.executable, "-m", "tailrace.pipeline.jvm.class_archive"], variables, root)
    (archive,) = (tmp_path / "tailrace" / "classes").glob("*.jsa")
    told = {"JAVA_TOOL_OPTIONS": f"-Xlog:class+load:file={loaded}"}
    run([sys.executable, "-c", SESSION], variables | told, root)
    lines = [line for line in loaded.read_text().splitlines() if "org.apache.spark.SparkContext " in line]
    assert [line for line in lines if "shared objects file (top)" in line], (archive, lines)


def test_archives_of_environments_that_are_gone_are_removed(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    for name, jars in (("here", tmp_path / "jars"), ("gone", tmp_path / "no-jars")):
        (tmp_path / f"{name}.lock").write_text(str(jars))
        (tmp_path / f"{name}.jsa").touch()
        (tmp_path / f"{name}.base").touch()
    (tmp_path / "old.lock").touch()  # says nothing
    (tmp_path / "old.jsa").touch()
    remove_stale_archives(tmp_path)
    left = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert left == {"here.lock", "here.jsa", "here.base", "old.lock", "old.jsa"}
