"""Reading with `format("tailrace")`: to a job it looks like Spark's kafka source, but needs no jar.

Option names, schema and offset JSON are those of `format("kafka")`, so a job and its checkpoint migrate by changing one
word. One addition: a stream that starts at `latest`, which is the default, also needs the option `queryId`.
"""
