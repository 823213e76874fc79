"""The examples of the page about gRPC run, with stubs made by the command that the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tailrace.testing import Broker

page = (Path(__file__).parents[2] / "docs" / "grpc.md").read_text()


def run(command: str, folder: Path, broker: Broker) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GRPC_VERBOSITY": "NONE", "TAILRACE_BOOTSTRAP": broker.bootstrap}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_examples_run(tmp_path: Path) -> None:
    install, *commands = re.findall(r"^    (.*)$", page.split("## tailrace.v1")[0], re.MULTILINE)
    assert install.startswith("pip install grpcio-tools")
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(examples) == 2
    with Broker(grpc_port=0, fsync="never") as broker:
        run("\n".join(commands), tmp_path, broker)
        (queue,) = re.findall(r"`(tailrace queue create .*?)`", page)[:1]
        run(queue, tmp_path, broker)
        shown = []
        for number, example in enumerate(examples):
            (tmp_path / f"{number}.py").write_text(example.replace("127.0.0.1:50051", broker.endpoints["grpc"]))
            shown.append(run(f"python {number}.py", tmp_path, broker))
    assert sorted(re.findall(r"cooking (.*)", shown[0])) == ["a cake", "two coffees"]
    assert shown[1] == "cleaning table 4\n"
