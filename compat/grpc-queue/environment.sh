# Sourced by the scripts beside it: puts Tailrace's commands on the path, those of the checkout if there are any.
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
if [ -x "$root/.venv/bin/tailrace" ]; then
    PATH="$root/.venv/bin:$PATH"
elif ! command -v tailrace >/dev/null; then
    echo "$(basename "$0"): Tailrace is not installed: run 'make setup' in $root, or pip install 'tailrace[grpc]'." >&2
    exit 1
fi
