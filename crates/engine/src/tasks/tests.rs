use super::*;

const HOUR: Millis = 3_600_000;

fn tasks() -> UserTasks {
    UserTasks::new(Limits {
        active: 2,
        session: 60_000,
        kept: [(Class::KafkaAdmin, (24 * HOUR, 3)), (Class::KafkaMonitor, (HOUR, 10))].into(),
    })
}

fn asked(endpoint: &str, parameters: &[(&str, &str)], started: Millis) -> UserTask {
    UserTask {
        question: Question {
            method: "POST".to_owned(),
            endpoint: endpoint.to_owned(),
            parameters: parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        },
        written: format!("POST /kafkacruisecontrol/{endpoint}"),
        client: "127.0.0.1".to_owned(),
        class: Class::KafkaAdmin,
        started,
        status: Status::Active,
        ended: None,
    }
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn fine() -> Answer {
    Answer { code: 200, body: "{}".to_owned() }
}

#[test]
fn the_id_stands_for_the_question_whatever_the_order_of_its_parameters() {
    let mut tasks = tasks();
    let first = asked("rebalance", &[("json", "true"), ("dryrun", "false")], 0);
    assert_eq!(tasks.admit(first, None, "s", id(1)), Ok(Admission::New));
    let again = asked("rebalance", &[("dryrun", "false"), ("json", "true")], 5);
    assert_eq!(tasks.admit(again, Some(id(1)), "other", id(2)), Ok(Admission::Known(id(1))));
    let another = asked("rebalance", &[("json", "true")], 5);
    let refused = tasks.admit(another.clone(), Some(id(1)), "s", id(2)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Unexpected header 00000000-0000-0000-0000-000000000001 (value: User-Task-ID) in the request."
    );
    assert_eq!(tasks.admit(another, Some(id(9)), "s", id(2)), Err(Refused::UnexpectedId(id(9))));
}

#[test]
fn a_client_without_ids_finds_its_task_through_its_session_until_it_has_the_answer() {
    let mut tasks = tasks();
    assert_eq!(tasks.admit(asked("rebalance", &[], 0), None, "s", id(1)), Ok(Admission::New));
    assert_eq!(tasks.admit(asked("rebalance", &[], 10), None, "s", id(2)), Ok(Admission::Known(id(1))));
    assert_eq!(tasks.admit(asked("rebalance", &[], 10), None, "other", id(3)), Ok(Admission::New));
    tasks.answered(id(1), fine(), false, 0);
    assert_eq!(tasks.admit(asked("rebalance", &[], 20), None, "s", id(4)), Ok(Admission::Known(id(1))));
    tasks.taken("s", &asked("rebalance", &[], 0).question);
    assert_eq!(tasks.admit(asked("rebalance", &[], 30), None, "s", id(4)), Ok(Admission::New));
}

#[test]
fn only_tasks_without_an_answer_count_as_active() {
    let mut tasks = tasks();
    for number in 1..=20 {
        let session = number.to_string();
        assert_eq!(tasks.admit(asked("load", &[], 0), None, &session, id(number)), Ok(Admission::New));
        tasks.answered(id(number), fine(), false, 0);
    }
    for number in [21, 22] {
        tasks.admit(asked("load", &[], 0), None, &number.to_string(), id(number)).unwrap();
    }
    for (number, small) in [(30, "state"), (31, "stop_proposal_execution"), (32, "user_tasks")] {
        assert_eq!(tasks.admit(asked(small, &[], 0), None, "s", id(number)), Ok(Admission::New));
    }
    let refused = tasks.admit(asked("load", &[], 0), None, "23", id(23)).unwrap_err();
    assert_eq!(refused.to_string(), "There are already 2 active user tasks, which has reached the servlet capacity.");
}

#[test]
fn an_execution_ends_its_task_well_or_not() {
    for (well, wanted) in [(true, Status::Completed(fine())), (false, Status::CompletedWithError(fine()))] {
        let mut tasks = tasks();
        tasks.admit(asked("rebalance", &[], 0), None, "s", id(1)).unwrap();
        tasks.answered(id(1), fine(), true, 0);
        assert_eq!(tasks.get(id(1)).unwrap().status, Status::InExecution(fine()));
        tasks.executed(id(1), well, 0);
        assert_eq!(tasks.get(id(1)).unwrap().status, wanted);
    }
    let mut tasks = tasks();
    tasks.admit(asked("rebalance", &[], 0), None, "s", id(1)).unwrap();
    let failed = Answer { code: 500, body: String::new() };
    tasks.answered(id(1), failed.clone(), true, 0);
    assert_eq!(tasks.get(id(1)).unwrap().status, Status::CompletedWithError(failed));
}

#[test]
fn answered_tasks_go_by_age_and_by_number_but_never_while_they_run() {
    let mut tasks = tasks();
    for number in 0..6 {
        tasks.admit(asked("rebalance", &[], number as Millis), None, &number.to_string(), id(number)).unwrap();
        tasks.answered(id(number), fine(), number == 0, number as Millis);
    }
    let gone: Vec<Uuid> = tasks.forget(10).into_iter().map(|(id, _)| id).collect();
    assert_eq!(gone, [id(1), id(2)]);
    let left: Vec<Uuid> = tasks.latest_first().into_iter().map(|(id, _)| id).collect();
    assert_eq!(left, [id(5), id(4), id(3), id(0)]);
    assert_eq!(tasks.forget(25 * HOUR).len(), 3);
    assert!(tasks.get(id(0)).is_some(), "it is still being executed");
}

#[test]
fn what_ran_for_long_is_kept_as_what_ended_last() {
    let mut tasks = tasks();
    let mut ask = |number: u128, executes: bool| {
        let at = number as Millis * HOUR;
        tasks.admit(asked("rebalance", &[], at), None, &number.to_string(), id(number)).unwrap();
        tasks.answered(id(number), fine(), executes, at);
    };
    ask(0, true);
    // Longer than anything is kept, and more than are kept.
    (24..30).for_each(|number| ask(number, false));
    tasks.executed(id(0), true, 30 * HOUR);
    tasks.forget(30 * HOUR);
    let left = |tasks: &UserTasks| tasks.latest_first().into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!(left(&tasks), [id(29), id(28), id(0)]);
    // A next life has it from the record.
    let mut after = super::tests::tasks();
    tasks.latest_first().into_iter().for_each(|(id, task)| after.restore(id, (*task).clone()));
    after.forget(53 * HOUR);
    assert_eq!(left(&after), [id(29), id(0)]);
    after.forget(55 * HOUR);
    assert!(left(&after).is_empty());
}

#[test]
fn after_a_restart_answers_are_known_and_what_was_lost_says_so() {
    let mut before = tasks();
    before.admit(asked("rebalance", &[], 0), None, "s", id(1)).unwrap();
    before.answered(id(1), fine(), true, 0);
    before.admit(asked("add_broker", &[], 0), None, "s", id(2)).unwrap();
    let mut after = tasks();
    for (id, task) in before.latest_first() {
        after.restore(id, (*task).clone());
    }
    assert_eq!(after.get(id(1)).unwrap().status, Status::InExecution(fine()));
    assert!(matches!(&after.get(id(2)).unwrap().status, Status::CompletedWithError(answer) if answer.code == 503));
    assert_eq!(after.admit(asked("rebalance", &[], 9), Some(id(1)), "new", id(3)), Ok(Admission::Known(id(1))));
}

#[test]
fn who_reads_json_is_told_of_a_restart_in_json() {
    let mut tasks = tasks();
    tasks.restore(id(1), asked("rebalance", &[("json", "true")], 1));
    tasks.restore(id(2), asked("rebalance", &[], 1));
    let body = |number| tasks.get(id(number)).unwrap().status.answer().unwrap().body.clone();
    let read: ErrorBody = serde_json::from_str(&body(1)).unwrap();
    assert_eq!(read.error_message, body(2));
    assert!(body(2).starts_with("The engine was restarted"), "{}", body(2));
}

#[test]
fn what_is_over_before_its_answer_is_noted_is_over() {
    let mut tasks = tasks();
    tasks.admit(asked("rebalance", &[], 0), None, "s", id(1)).unwrap();
    tasks.executed(id(1), true, 0);
    tasks.answered(id(1), fine(), true, 0);
    assert_eq!(tasks.get(id(1)).unwrap().status, Status::Completed(fine()));
}

#[test]
fn answers_are_kept_as_far_as_there_is_room_the_latest_first() {
    let mut tasks = tasks();
    let long = |bytes: usize| Answer { code: 200, body: "x".repeat(bytes) };
    let mut ask = |number: u128, bytes: usize, executes: bool| {
        tasks.admit(asked("rebalance", &[], number as i64), None, &number.to_string(), id(number)).unwrap();
        tasks.answered(id(number), long(bytes), executes, number as i64);
    };
    ask(1, KEPT_BYTES, true);
    ask(2, 10, false);
    ask(3, KEPT_BYTES, false);
    ask(4, 10, false);
    let gone: Vec<Uuid> = tasks.forget(100).into_iter().map(|(gone, _)| gone).collect();
    assert_eq!(gone, [id(3), id(2)], "the latest stays, and what is being carried out does");
    assert_eq!(tasks.forget(100), []);
    // One that is too long alone is there until the next.
    tasks.admit(asked("rebalance", &[], 5), None, "5", id(5)).unwrap();
    tasks.answered(id(5), long(KEPT_BYTES + 1), false, 5);
    assert_eq!(tasks.forget(100).len(), 1);
    assert!(tasks.get(id(5)).is_some());
}

#[test]
fn whoever_looks_at_them_has_them_as_they_were_then() {
    let mut tasks = tasks();
    tasks.admit(asked("rebalance", &[], 0), None, "s", id(1)).unwrap();
    tasks.answered(id(1), fine(), true, 0);
    let seen = tasks.latest_first();
    // An answer is made of them while others go on.
    tasks.executed(id(1), true, 0);
    assert_eq!(seen[0].1.status, Status::InExecution(fine()));
    assert_eq!(tasks.get(id(1)).unwrap().status, Status::Completed(fine()));
}
