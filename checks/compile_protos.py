"""`python -m checks.compile_protos`: compile the .proto files of the gRPC door into the descriptor set that it loads.

The package has no generated code: it makes its message classes from the descriptor set when the door opens. A test
compares the set with the .proto files.
"""

import sys
from pathlib import Path
from typing import Final

DOOR: Final = Path(__file__).parents[1] / "src" / "tailrace" / "doors" / "grpc"
PROTOS: Final = DOOR / "protos"
DESCRIPTORS: Final = DOOR / "descriptors.binpb"


def compile_protos(into: Path) -> int:
    """Compile all .proto files, and what they import, into one descriptor set; the compiler's exit code."""
    import grpc_tools
    from grpc_tools import protoc

    known = Path(grpc_tools.__file__).parent / "_proto"  # google/protobuf/*.proto
    files = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    options = [f"--proto_path={PROTOS}", f"--proto_path={known}", "--include_imports", f"--descriptor_set_out={into}"]
    return int(protoc.main(["protoc", *options, *files]))


if __name__ == "__main__":
    sys.exit(compile_protos(DESCRIPTORS))
