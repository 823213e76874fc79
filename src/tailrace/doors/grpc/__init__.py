"""The gRPC door: two services in front of the log, and what tools expect beside them.

| service | what it is for |
|---|---|
| `message_queue.MessageQueue` | stubs of another queue: unary calls, a partition at the broker that leads it |
| `tailrace.v1.*` | new programs: producing, consuming and queues as streams, topics, groups; routed from any broker |
| `grpc.health.v1.Health` | load balancers |
| `grpc.reflection.v1.ServerReflection` | tools like grpcurl, if `grpc.reflection.enable` is set |

gRPC has its own sockets and threads, so nothing of it can be simulated. Therefore only `door` imports it (and, for TLS,
`credentials`), and only translates: the services are coroutines over plain message objects, a `Call` and a `Stream`
(`calls`). Message classes are made when the door opens, from the descriptor set `descriptors.binpb`, which is compiled
from `protos/`: the package has no generated code, which would be tied to the versions of its generator.
"""
