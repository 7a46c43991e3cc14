"""Makes graphsvc/v1 from the proto files: messages, gRPC stubs and the types of both.

``python proto/generate.py`` writes the files; with ``--check`` it writes nothing and ends with status 1 when they are not fresh.
The proto package is named like the Python package, so that the imports in the generated files are right as they come.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "proto"
PACKAGE = Path("graphsvc/v1")


def generate(folder: Path) -> None:
    """Write the generated files below the folder. Raises CalledProcessError when the compiler refuses a proto file."""
    protos = [str(path.relative_to(SOURCES)) for path in sorted(SOURCES.rglob("*.proto"))]
    outputs = [
        f"--python_out={folder}",
        f"--grpc_python_out={folder}",
        f"--mypy_out=quiet:{folder}",
        f"--mypy_grpc_out=quiet,only_sync:{folder}",
    ]
    # The plug-ins of mypy-protobuf stand beside the interpreter; a virtual environment need not be activated for this to work.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={SOURCES}", *outputs, *protos],
        check=True,
        cwd=SOURCES,
        env={**os.environ, "PATH": path},
    )


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*_pb2*"))}


def stale() -> list[str]:
    """Names of generated files that differ from what the proto files give, are missing or are left over."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        fresh = _files(Path(scratch) / PACKAGE)
    present = _files(ROOT / PACKAGE)
    return sorted(name for name in fresh.keys() | present.keys() if fresh.get(name) != present.get(name))


def main(arguments: list[str]) -> int:
    """Generate or, with --check, compare; returns the exit status."""
    if arguments == ["--check"]:
        names = stale()
        if names:
            print(f"not fresh, run `make proto`: {', '.join(names)}", file=sys.stderr)
        return 1 if names else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    generate(ROOT)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
