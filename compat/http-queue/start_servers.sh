#!/usr/bin/env bash
# Starts the servers of the HTTP queue: three brokers, at 127.0.0.1:8001, :8002 and :8003. Ctrl-C stops them.
#   ./start_servers.sh [options of `tailrace cluster up`]
# The data is in ./queue-data. Each broker takes every request, from producers and from consumers.
set -eu
if ! command -v tailrace >/dev/null; then
    echo "start_servers.sh: tailrace is not on the path: pip install 'tailrace[http]'" >&2
    exit 1
fi
exec tailrace cluster up --brokers 3 --data-dir ./queue-data --http-port 8001 "$@"
