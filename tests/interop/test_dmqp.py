"""What the users of DMQP type: `docker.sh`, `make`, `partition`, the C program, and the client to copy in Python."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.dmqp import dmqp_client
from tailrace.testing import Broker
from tests.interop.dmqp_server import COMPAT, ENVIRONMENT, partition

ENODATA, EMSGSIZE = 61, 90
MiB = 1024 * 1024
NO_COMPILER = shutil.which("cc") is None or shutil.which("make") is None


class Server:
    def __init__(self, folder: Path, port: str, *options: str) -> None:
        self.folder = folder
        self.port = port
        self.options = options
        self.program = Path()

    def run(self, *command: str, data: bytes = b"") -> tuple[int, bytes]:
        """Run the C program: its exit code, and what it writes."""
        line = [str(self.program), *self.options, "127.0.0.1", self.port, *command]
        done = subprocess.run(line, input=data, capture_output=True, timeout=60, check=False)
        return done.returncode, done.stdout


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if NO_COMPILER:
        pytest.skip("cc or make is missing")
    folder = tmp_path_factory.mktemp("build")
    subprocess.run(["make", "-s", "-C", str(COMPAT), f"BUILD={folder}"], check=True, timeout=120)
    return folder / "dmqp"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("data")
    with partition(folder) as port:
        yield Server(folder, port, "--ca", str(folder / "dmqp-certificate.pem"))


@pytest.fixture
def server(running: Server, program: Path) -> Server:
    running.program = program
    return running


@pytest.mark.foreign
def test_the_c_program_pushes_peeks_and_pops_with_tls(server: Server) -> None:
    assert server.run("pop", "0") == (ENODATA, b"")
    assert server.run("push", "0", data=b"two\0coffees") == (0, b"")
    assert server.run("peek", "0") == (0, b"two\0coffees")
    status, stamp = server.run("peek-timestamp", "0")
    assert (status, int(stamp) > 1_700_000_000) == (0, True)
    assert server.run("pop", "1") == (ENODATA, b"")
    assert server.run("pop", "0") == (0, b"two\0coffees")
    assert server.run("pop", "0") == (ENODATA, b"")


@pytest.mark.foreign
def test_the_c_program_sends_one_mebibyte_and_not_a_byte_more(server: Server) -> None:
    whole = os.urandom(MiB)
    assert server.run("push", "2", data=whole) == (0, b"")
    assert server.run("push", "2", data=whole + b"!")[0] == EMSGSIZE
    assert server.run("pop", "2") == (0, whole)
    assert server.run("pop", "2") == (ENODATA, b"")


@pytest.mark.foreign
def test_the_c_program_pipelines(server: Server) -> None:
    lines = [b"line %d" % number for number in range(2000)]
    assert server.run("push-lines", "3", data=b"\n".join(lines) + b"\n") == (0, b"")
    status, first = server.run("pop", "3")
    assert status == 0
    assert first in lines
    assert server.run("pop-all", "4") == (0, b"")


@pytest.mark.foreign
def test_the_c_program_refuses_a_server_that_it_does_not_trust(server: Server) -> None:
    line = [str(server.program), "127.0.0.1", server.port, "pop", "0"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "self-signed" in done.stderr or "certificate" in done.stderr


@pytest.mark.foreign
def test_the_headers_of_the_original_without_tls_and_after_a_restart(tmp_path: Path, program: Path) -> None:
    options = ("--plain", "--program-order")
    with partition(tmp_path, *options) as port:
        server = Server(tmp_path, port, *options)
        server.program = program
        for number in range(5):
            assert server.run("push", "9", data=b"%d" % number) == (0, b"")
        first = server.run("pop", "9")
    with partition(tmp_path, *options) as port:
        server = Server(tmp_path, port, *options)
        server.program = program
        status, out = server.run("pop-all", "9")
    assert (status, sorted([first[1], *out.split()])) == (0, [b"0", b"1", b"2", b"3", b"4"])


def test_the_python_client_to_copy(running: Server) -> None:
    certificate = str(running.folder / "dmqp-certificate.pem")
    with dmqp_client.Client("127.0.0.1", int(running.port), ca_file=certificate) as client:
        assert client.pop(7) is None
        assert client.peek_timestamp(7) is None
        stamp = client.push(7, b"two coffees")
        assert client.peek(7) == (stamp, b"two coffees")
        assert client.peek_timestamp(7) == stamp
        assert client.pop(7) == (stamp, b"two coffees")
        assert client.pop(7) is None
        assert client.push_all(8, (b"%d" % number for number in range(1500))) == 1500
        with pytest.raises(dmqp_client.DmqpError) as refused:
            client.push(7, bytes(MiB + 1))
        assert refused.value.status == EMSGSIZE
        assert client.pop(8) is not None


def test_the_shell_of_docker_sh_has_the_programs(tmp_path: Path) -> None:
    for arguments in ([], ["--attach"]):
        done = subprocess.run(
            [str(COMPAT / "scripts" / "docker.sh"), *arguments],
            input="command -v tailrace && pwd\n",
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout.split()[-1] == str(COMPAT)
    misused = subprocess.run([str(COMPAT / "scripts" / "docker.sh"), "--help"], capture_output=True, check=False)
    assert misused.returncode == 2


def test_the_gateway_serves_dmqp_in_front_of_a_cluster(tmp_path: Path) -> None:
    with Broker(fsync="never") as broker:
        line = [sys.executable, "-m", "tailrace", "gateway", "--upstream", broker.bootstrap, "--dmqp-port", "0"]
        gateway = subprocess.Popen(line, cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        try:
            assert gateway.stdout is not None
            ready = dict(part.split("=") for part in gateway.stdout.readline().split()[1:])
            port = int(ready["dmqp"].rpartition(":")[2])
            certificate = str(tmp_path / "tailrace-gateway" / "dmqp-certificate.pem")
            with dmqp_client.Client("127.0.0.1", port, ca_file=certificate) as client:
                client.push(1, b"through the gateway")
                found = [client.peek(1), client.pop(1)]
                assert [one and one.payload for one in found] == [b"through the gateway"] * 2
                assert client.pop(1) is None
        finally:
            gateway.terminate()
            gateway.communicate(timeout=60)
