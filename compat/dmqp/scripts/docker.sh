#!/usr/bin/env bash
# A shell in which `make` and `./partition/partition` work: in a container where Docker runs, else right here.
#   ./scripts/docker.sh            start the environment
#   ./scripts/docker.sh --attach   another shell in it
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
root=$(cd "$here/../.." && pwd)
name=tailrace-dmqp

case "${1:-}" in
    "" | --attach) ;;
    *)
        echo "usage: ./scripts/docker.sh [--attach]" >&2
        exit 2
        ;;
esac

if docker info >/dev/null 2>&1; then
    if [ "${1:-}" = --attach ]; then
        exec docker exec -it "$name" bash
    fi
    exec docker run --rm -it --name "$name" -p 8000:8000 -v "$root:/tailrace" -w /tailrace/compat/dmqp \
        python:3.11 bash -c "pip install --quiet '/tailrace[dmqp]' && exec bash"
fi

# No Docker: the environment is this machine, with the programs of the checkout's virtual environment on the path.
if [ -x "$root/.venv/bin/tailrace" ]; then
    PATH="$root/.venv/bin:$PATH"
elif ! command -v tailrace >/dev/null; then
    echo "docker.sh: there is neither Docker nor an installed Tailrace: run 'make setup' in $root first." >&2
    exit 1
fi
export PATH
cd "$here"
exec "${SHELL:-/bin/bash}"
