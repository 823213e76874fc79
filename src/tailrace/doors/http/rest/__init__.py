"""The REST API under `/v1`: topics, records, groups, queues and the cluster, for people with `curl` and for programs.

Each operation is data (`operation`): method, path, parameters, shapes of bodies and answers, and its handler.
`topics`, `producing`, `consuming`, `groups`, `queues` and `clusters` have the operations of their subject,
`operations` lists them all, `mounting` makes routes of the server of them, `openapi` the document. `records` is the
JSON form of records, `problems` and `kinds` are the errors, `schema` the shapes. `once` makes requests repeatable,
`locks` keeps what clients have taken from queues. The API stands on `client` alone, so it works in front of any
Kafka.
"""
