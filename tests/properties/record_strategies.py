"""Records as Hypothesis makes them up, with names in headers that are not UTF-8 and times that do not exist."""

from hypothesis import strategies as st

from tailrace.records.compress import COMPRESSIONS
from tailrace.records.record import NewRecord

contents = st.none() | st.binary(max_size=300)
names = st.text(max_size=8) | st.binary(max_size=4).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
headers = st.lists(st.tuples(names, st.none() | st.binary(max_size=20)), max_size=3).map(tuple)
timestamps = st.integers(-1, 2**63 - 1) | st.integers(1_700_000_000_000, 1_700_000_100_000)
new_records = st.builds(NewRecord, contents, contents, headers, timestamps)
several = st.lists(new_records, min_size=1, max_size=12)
codecs = st.sampled_from(COMPRESSIONS)
