//! Which stories there are, for every arm that tells them.

/// Every story as a test. The arm says how its tests are marked, and which function of `stage` makes a stage for a story
/// of this name.
macro_rules! suite {
    ($marks:tt $stage:ident) => {
        $crate::suite::suite!(@module $marks $stage stories [
            ask_look_approve_follow
            progress_is_never_older_than_five_seconds
            auto_approval_goes_through_without_a_word
            a_stop_ends_the_run_and_keeps_what_was_known
            a_refresh_brings_a_new_proposal_with_new_loads
            a_refresh_of_a_run_stops_it_first
            an_edit_is_a_refresh
            two_at_once_run_one_after_the_other
            what_follows_an_outdated_proposal_is_not_outdated
            a_pause_loses_nothing
            a_template_is_left_alone_and_lends_its_settings
            brokers_are_emptied_by_name
            new_brokers_are_filled_by_name
            no_more_is_moved_than_the_limit_says
            a_limit_that_nobody_can_read_is_not_taken_for_none
        ]);
        $crate::suite::suite!(@module $marks $stage moves [
            disks_are_evened_out_and_say_how_far_they_are
            a_disk_is_emptied_and_every_move_off_it_has_its_reason
            leaders_weigh_nothing_so_it_is_nothing_until_it_is_everything
        ]);
        $crate::suite::suite!(@module $marks $stage trouble [
            a_bad_spec_is_refused_with_what_would_mend_it
            a_wrong_word_is_warned_of_and_kept
            what_cannot_begin_yet_begins_once_it_can
            an_engine_out_of_reach_mid_run_changes_nothing_but_a_warning
            an_engine_that_restarts_mid_run_is_followed_on
            a_kafka_that_is_not_ready_does_not_end_a_run
            a_foreign_config_map_is_not_touched
            a_config_map_that_may_not_be_made_is_told_and_made_once_it_may
            a_load_that_was_refused_is_written_later_and_not_left_to_be_that_of_before
            a_template_whose_name_is_none_is_told_and_holds_up_nothing
            a_run_whose_config_map_is_refused_can_be_stopped
            a_run_whose_config_map_is_refused_can_be_deleted
            a_config_map_that_somebody_removed_comes_back
            who_comes_after_one_of_the_same_name_has_its_own_load
            a_run_is_followed_where_it_is_when_its_label_changes
            a_run_is_followed_where_it_is_when_its_label_is_taken_away
            disks_that_are_not_there_cannot_be_balanced
            a_hard_goal_that_cannot_hold_is_named_with_what_would_help
            a_kafka_of_another_operator_is_left_alone
            what_does_not_matter_of_a_kafka_wakes_nobody
        ]);
        $crate::suite::suite!(@module $marks $stage foreign [
            it_is_followed_to_its_end_when_nobody_wants_it_any_more
            it_can_still_be_stopped_then
        ]);
        $crate::suite::suite!(@module $marks $stage deletion [
            a_deletion_waits_for_the_end_and_goes_on_reporting
            a_deletion_while_the_engine_is_asked_comes_before_what_it_was_asked_for
            a_paused_run_is_followed_to_its_end_though_its_engine_is_no_longer_wanted
            a_deleted_run_can_still_be_stopped
            a_proposal_holds_nothing
            a_deletion_does_not_wait_for_a_kafka_that_is_gone
            a_kafka_that_goes_after_the_deletion_lets_go_too
            a_namespace_that_goes_takes_it_along
            a_generated_one_that_has_not_begun_is_stopped_and_left_to_its_maker
        ]);
        $crate::suite::suite!(@module $marks $stage misbehaviour [
            garbage_is_called_garbage
            an_answer_without_end_is_not_read_to_its_end
            what_is_no_number_is_shown_as_none
            a_proposal_without_a_name_is_not_asked_for_again_and_again
            an_engine_that_says_nothing_holds_up_nobody
            a_wrong_password_is_explained
            a_run_is_not_lost_on_an_answer_that_is_none
        ]);
        $crate::suite::suite!(@module $marks $stage slow [
            a_proposal_that_takes_its_time_is_followed_to_its_end
            a_proposal_that_is_refused_in_the_end_says_why
            what_an_engine_was_at_when_it_went_is_asked_for_again
            an_operator_that_comes_later_follows_what_was_begun
            who_stops_does_not_wait_for_a_slow_proposal
            a_deletion_waits_for_a_slow_proposal_and_begins_nothing
            an_engine_that_never_answers_at_once_is_as_good_as_another
            an_execution_that_is_refused_in_the_end_has_moved_nothing
            an_execution_whose_engine_goes_is_found_again_or_given_up
        ]);
    };
    // On sockets, so in real time wherever they are told.
    (@sockets $marks:tt $stage:ident) => {
        $crate::suite::suite!(@module $marks $stage authority [
            a_certificate_of_another_authority_is_explained
            an_engine_without_tls_is_told_nothing_and_explained
        ]);
    };
    // Only where time can jump: a proposal is called slow after ten minutes.
    (@long $marks:tt $stage:ident) => {
        $crate::suite::suite!(@module $marks $stage misbehaviour [
            a_proposal_that_is_never_finished_is_warned_of
        ]);
    };
    // Only where the definitions are nobody else's: a real server has one life for all stories.
    (@alone $marks:tt $stage:ident) => {
        $crate::suite::suite!(@module $marks $stage admitted [
            what_only_others_definitions_admit_is_answered_and_hides_nobody
        ]);
    };
    (@module $marks:tt $stage:ident $module:ident [$($story:ident)*]) => {
        mod $module {
            $($crate::suite::suite!(@story $marks $stage $module $story);)*
        }
    };
    (@story [$($mark:tt)*] $stage:ident $module:ident $story:ident) => {
        $($mark)*
        async fn $story() {
            let stage = $crate::arm::$stage(stringify!($story)).await;
            $crate::$module::$story(stage).await;
        }
    };
}

pub(crate) use suite;
