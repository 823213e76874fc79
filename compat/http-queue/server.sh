#!/usr/bin/env bash
# Starts one server of the HTTP queue alone; more of them become one cluster.
#   ./server.sh 1                 the first one: HTTP at 127.0.0.1:8001, Kafka at 127.0.0.1:9092
#   ./server.sh N [options of `tailrace serve`]     the others, in shells of their own: HTTP at 8000 + N
# The data of server N is in ./queue-data/server-N. A server that is started again goes on where it was.
set -eu
number=${1:?"usage: ./server.sh NUMBER [options of tailrace serve]"}
shift
if ! [[ $number =~ ^[1-9][0-9]?$ ]]; then
    echo "server.sh: the number of a server is from 1 to 99, not '$number'" >&2
    exit 2
fi
if ! command -v tailrace >/dev/null; then
    echo "server.sh: tailrace is not on the path: pip install 'tailrace[http]'" >&2
    exit 1
fi
join=()
if [ "$number" -gt 1 ]; then
    join=(--join 127.0.0.1:9092)
fi
exec tailrace serve --data-dir "./queue-data/server-$number" --kafka-port $((9091 + number)) \
    --http-port $((8000 + number)) ${join[@]+"${join[@]}"} "$@"
