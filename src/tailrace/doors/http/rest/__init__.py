"""The REST API under `/v1`: topics, records, groups, queues and the cluster, for people with `curl` and for programs.

Each operation is data (`operation`): method, path, parameters, shapes of bodies and answers, and its handler.
`topics`, `producing`, `consuming`, `groups`, `queues` and `clusters` have the operations of their subject,
`operations` lists them all, `mounting` makes routes of the server of them, `openapi` the document. `records` is the
JSON form of records, `problems` and `kinds` are the errors, `schema` the shapes. `once` makes requests repeatable,
`locks` keeps the locks of queue messages that are not settled yet. The API uses `client` alone, so it works with any
Kafka.
"""
