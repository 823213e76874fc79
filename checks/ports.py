"""The ports rule: of the rooms that a broker is made of, only ports/ uses time, randomness, files, sockets, threads and
processes.

A broker can be replayed from a seed because it gets all of these through the values in `Ports`. A single `time.time()`
elsewhere would make two runs of a seed differ.

The rule holds for the rooms from model/ up to doors/, which run in a broker. local/ stands among them in the layers and
is exempt, as testing/ and cli/ are: it starts brokers as processes and waits for them, runs in none, and cannot be part
of a simulation. Every room is in one of the two lists below, so that a new one needs a decision.

Forbidden are whole modules (`time`, `socket`); names in modules that are otherwise harmless (`io`, `pathlib`,
`datetime`, `asyncio`), and all of `os` except a list of pure names; and methods that only an event loop has.
The rule cannot see a forbidden function that is passed in as a value, nor `getattr` and `__import__`.
"""

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from checks.finding import Finding
from checks.names import imported, used, within
from checks.tree import Source

ROOMS_ON_PORTS: Final = (
    "model",
    "records",
    "wire",
    "log",
    "raft",
    "cluster",
    "groups",
    "queues",
    "transactions",
    "security",
    "broker",
    "client",
    "doors",
)
EXEMPT_ROOMS: Final = ("ports", "local", "console", "pipeline", "testing", "cli", "__main__")

# Each forbidden module, and the port to use instead.
FORBIDDEN_MODULES: Final = {
    "time": "ports.clock",
    "sched": "ports.clock",
    "random": "ports.randomness",
    "secrets": "ports.randomness",
    "uuid": "ports.randomness (new_id)",
    "tempfile": "ports.disk",
    "shutil": "ports.disk",
    "glob": "ports.disk (names)",
    "fcntl": "ports.disk (lock)",
    "mmap": "ports.disk (cold reads)",
    "socket": "ports.net",
    "select": "ports.net",
    "selectors": "ports.net",
    "uvloop": "ports.net; the command line chooses the loop",
    "threading": "ports.offload",
    "_thread": "ports.offload",
    "concurrent": "ports.offload",
    "multiprocessing": "ports.offload",
    "subprocess": "ports.host",
    "signal": "ports.host",
}

FORBIDDEN_NAMES: Final = {
    "pathlib.Path": "ports.disk; for names alone use os.path.join or PurePosixPath",
    "pathlib.PosixPath": "ports.disk",
    "io.open": "ports.disk",
    "io.open_code": "ports.disk",
    "io.FileIO": "ports.disk",
    "codecs.open": "ports.disk",
    "gzip.open": "ports.disk",
    "datetime.datetime.now": "ports.clock (wall_ms)",
    "datetime.datetime.utcnow": "ports.clock (wall_ms)",
    "datetime.datetime.today": "ports.clock (wall_ms)",
    "datetime.date.today": "ports.clock (wall_ms)",
    "asyncio.to_thread": "ports.offload (thread)",
    "asyncio.open_connection": "ports.net (connect)",
    "asyncio.start_server": "ports.net (listen)",
    "asyncio.create_subprocess_exec": "ports.host",
    "asyncio.create_subprocess_shell": "ports.host",
}

FORBIDDEN_LOOP_METHODS: Final = {
    "run_in_executor": "ports.offload",
    "create_server": "ports.net (listen)",
    "create_connection": "ports.net (connect)",
    "create_datagram_endpoint": "ports.net",
    "add_signal_handler": "ports.host",
    "subprocess_exec": "ports.host",
    "subprocess_shell": "ports.host",
}

OS_ALLOWED: Final = (
    "os.PathLike",
    "os.fspath",
    "os.sep",
    "os.strerror",
    "os.path.basename",
    "os.path.dirname",
    "os.path.isabs",
    "os.path.join",
    "os.path.normpath",
    "os.path.split",
    "os.path.splitext",
)

BARE_PACKAGES: Final = ("os", "os.path")  # importing them is allowed; each name used of them is checked


def bypasses_ports(source: Source) -> list[Finding]:
    if source.room not in ROOMS_ON_PORTS:
        return []
    hits = dict.fromkeys([*_imports(source.nodes), *_names(source.nodes), *_calls(source.nodes)])
    remedy = "Of the rooms of a broker, only ports/ may do this: take it from the Ports value, {port}."
    return [Finding(source.path, line, f"uses {what}", remedy.format(port=port)) for line, what, port in hits]


def _imports(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str, str]]:
    for line, name in imported(nodes):
        top = name.split(".")[0]
        if top in FORBIDDEN_MODULES:
            yield line, top, FORBIDDEN_MODULES[top]
        elif name not in BARE_PACKAGES and (port := _port_for(name)):
            yield line, name, port


def _names(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str, str]]:
    for line, name in used(nodes):
        if name not in BARE_PACKAGES and (port := _port_for(name)):
            yield line, name, port


def _port_for(name: str) -> str:
    """The port to use instead of a dotted name; empty if the name is allowed."""
    if within(name, "os") and not any(within(name, pure) for pure in OS_ALLOWED):
        return "ports.disk or ports.host"
    return next((port for forbidden, port in FORBIDDEN_NAMES.items() if within(name, forbidden)), "")


def _calls(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str, str]]:
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            yield node.lineno, "open()", "ports.disk"
        elif isinstance(node.func, ast.Attribute) and node.func.attr in FORBIDDEN_LOOP_METHODS:
            yield node.lineno, f"loop.{node.func.attr}()", FORBIDDEN_LOOP_METHODS[node.func.attr]
