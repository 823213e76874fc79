"""The pipeline's tests once more, against Apache Kafka 4.3 itself.

They are the very functions that run against our broker in `make test`; what differs are the fixtures `broker` and
`cluster`, which this folder has of its own. What fails here and passes there is a mistake that our broker shares with
our client.
"""

# ruff: noqa: F401 - pytest finds tests and their fixtures by name, wherever they were written

import pytest

from tests.pipeline.crash_scene import scene
from tests.pipeline.test_analysis import test_how_far_groups_were_behind
from tests.pipeline.test_batch_reads import (
    test_all_columns_of_all_compressions,
    test_filters_narrow_what_is_read,
    test_only_what_lies_between_the_edges,
    test_what_retention_ate,
)
from tests.pipeline.test_crashes import test_a_replay, test_a_task_of_an_archive, test_from_topic_to_topic
from tests.pipeline.test_damaged_batches import (
    test_damage_is_set_aside_with_a_report,
)
from tests.pipeline.test_empty_fetch_responses import (
    test_a_broker_that_holds_a_client_back_is_asked_again,
    test_a_range_that_is_not_there_is_not_taken_for_read,
    test_compaction_may_have_left_nothing,
)
from tests.pipeline.test_event_time_windows import test_windows_with_late_records_over_restarts
from tests.pipeline.test_histories import (
    test_a_healthy_history_is_complete,
    test_a_history_that_retention_overtook_is_no_false_alarm,
    test_a_log_that_was_made_anew_is_seen,
    test_aborted_transactions_are_explained_and_no_alarm,
    test_each_record_is_there_once_over_restarts,
    whole,
)
from tests.pipeline.test_lost_records import (
    test_a_filter_beyond_the_end_asks_for_nothing,
    test_a_task_goes_on_behind_what_is_lost_while_it_reads,
    test_a_task_reads_what_is_left_of_its_range,
    test_a_topic_made_anew_is_a_failure,
    test_a_topic_made_anew_is_read_from_its_beginning,
)
from tests.pipeline.test_protections import stage, test_it_is_needed
from tests.pipeline.test_replay import (
    past,
    test_archive_delete_replay_gives_the_same_bytes,
    test_by_a_condition_in_sql_once,
    test_by_offset_time_and_key,
    test_it_goes_on_where_it_was_and_writes_nothing_twice,
)
from tests.pipeline.test_sink import (
    sink,
    task,
    test_a_batch_that_is_given_up_shows_nothing,
    test_a_crash_between_two_ends_is_completed,
    test_a_stream_is_written_exactly_once_over_restarts,
    test_a_task_that_was_fenced_is_not_committed,
    test_all_columns_are_written,
    test_an_attempt_that_lost_is_aborted,
    test_another_query_finishes_what_was_decided_before_its_tasks_run,
    test_nothing_is_seen_before_the_driver_commits,
    test_rows_go_where_their_keys_belong,
    test_rows_name_their_topics,
    test_rows_that_fail_are_told_and_their_transaction_is_aborted,
    test_the_next_batch_and_another_query_go_on,
    test_what_is_anothers_by_now_is_not_committed,
)
from tests.pipeline.test_streaming_reads import (
    run,
    test_a_restart_goes_on_where_it_was,
    test_a_start_at_latest_is_remembered_under_the_query_id,
    test_records_lost_between_two_runs,
)

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.foreign]
