"""`format("tailrace")` to read: Spark's kafka source in all that a job can see, without its jar.

Option names, schema and the JSON of offsets are those of `format("kafka")`, so that a job moves by changing one word,
and its checkpoint with it; but a stream that starts at `latest`, as they do by default, needs a `queryId` as well.
"""
