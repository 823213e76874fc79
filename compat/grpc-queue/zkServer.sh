#!/usr/bin/env bash
# There is no ZooKeeper: brokers keep the metadata and elect leaders themselves. So `start` and `stop` have nothing to do,
# and `status` asks the brokers.
set -eu
. "$(dirname "$0")/environment.sh"
case "${1:-}" in
    start) echo "nothing to start: the brokers of ./run.sh keep the metadata themselves" ;;
    stop) echo "nothing to stop: the brokers of ./run.sh keep the metadata themselves" ;;
    status)
        shift
        exec tailrace cluster status "$@"
        ;;
    *)
        echo "usage: ./zkServer.sh start|stop|status" >&2
        exit 2
        ;;
esac
