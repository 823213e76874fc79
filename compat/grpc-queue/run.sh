#!/usr/bin/env bash
# Start three brokers with gRPC at 127.0.0.1:50051 to 50053, data in ./brokers-data, until Ctrl-C. Whatever is given is
# passed on to `tailrace cluster up`, such as --brokers 5, or --grpc-port 0 for free ports.
set -eu
. "$(dirname "$0")/environment.sh"
case " $* " in *" --data-dir"*) ;; *) set -- --data-dir "$here/brokers-data" "$@" ;; esac
case " $* " in *" --grpc-port"*) ;; *) set -- --grpc-port 50051 "$@" ;; esac
exec tailrace cluster up "$@"
