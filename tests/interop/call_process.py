"""A program that takes calls line by line, as JSON, and answers each with a line."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.interop.client import Refused

root = Path(__file__).parents[2]
ANSWER_TIMEOUT_S = 60.0


class CallProcess:
    def __init__(self, name: str, command: Sequence[str], **variables: str) -> None:
        self._name = name
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=root,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)} | variables,
        )

    def ask(self, call: str, **arguments: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"call": call, **arguments}) + "\n")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_TIMEOUT_S)
        assert ready, f"{self._name}: no answer to {call} in {ANSWER_TIMEOUT_S} s"
        line = self._process.stdout.readline()
        assert line, f"{self._name} ended while it was asked to {call}"
        answer = json.loads(line)
        if "refused" in answer:
            raise Refused(answer["refused"], answer["text"])
        assert "failed" not in answer, f"{self._name}: {call}: {answer['text']}"
        return answer.get("result")

    def kill(self) -> None:
        """End it at once, as a crash would: SIGKILL."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
