//! Requests come back from their queries, and what cannot be is refused in the original's words.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use uuid::Uuid;

use super::*;
use crate::parameter::{
    AnomalyType, DataFrom, PartitionRange, Resource, Substate, TaskStatus, TimeOrNow, TopicPattern,
};

fn parse(method: Method, path_and_query: &str) -> Result<Request, Refusal> {
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    Request::parse(method, path, &Query::parse(query))
}

/// A query in which every parameter of an endpoint has some value of its kind: valid most of the time.
fn some_query(endpoint: Endpoint) -> impl Strategy<Value = Query> {
    let parameters = Request::parameters(endpoint);
    let count = parameters.len();
    let choice = (any::<bool>(), 0..6_usize, any::<u16>(), any::<bool>());
    prop::collection::vec(choice, count).prop_map(move |choices| {
        let mut query = Query::default();
        for (parameter, (given, pick, number, upper)) in parameters.iter().zip(choices) {
            if given && parameter.name != "review_id" {
                let name = if upper { parameter.name.to_ascii_uppercase() } else { parameter.name.to_owned() };
                query.push(&name, value(parameter.kind, pick, number));
            }
        }
        query
    })
}

fn value(kind: &str, pick: usize, number: u16) -> String {
    let one_of = |values: &[&str]| values[pick % values.len()].to_owned();
    match kind {
        "flag" => one_of(&["true", "false", "TRUE", "no"]),
        "text" => one_of(&["", "a b", "50% & more = less", "ä/ö?", "x,y", "+"]),
        "list of names" => one_of(&["", "A", "A,B", "a.b, c", "A,,B"]),
        "list of broker ids" => one_of(&["", "1", "3,1,2", "7,7"]),
        "list of `broker-/log/dir`" => one_of(&["", "0-/d1", "1-/a-b,0-/d2,1-/c"]),
        "regular expression" => one_of(&["", "__.*", "(?!x).*", "a|b", "[ab]+"]),
        "`NOW` or milliseconds" => one_of(&["NOW", "now", "1700000000000"]),
        "partition or `first-last`" => one_of(&["0", "3-7", "5-2"]),
        "number from 0 to 1" => one_of(&["0", "0.5", "1.0", "1e-9"]),
        "`VALID_WINDOWS` or `VALID_PARTITIONS`" => one_of(&["VALID_WINDOWS", "valid_partitions"]),
        "`CPU`, `DISK`, `NW_IN` or `NW_OUT`" => one_of(&["cpu", "DISK", "nw_in", "NW_OUT"]),
        "list of substates" => one_of(&["", "executor", "MONITOR,analyzer"]),
        "list of anomaly types" => one_of(&["", "goal_violation", "DISK_FAILURE,BROKER_FAILURE"]),
        "list of concurrency types" => one_of(&["", "inter_broker_replica", "LEADERSHIP_BROKER"]),
        "list of task ids" => one_of(&["", "e800c830-3664-4c9b-98ed-5ebdd1eebd9f"]),
        "list of endpoints" => one_of(&["", "rebalance", "STATE,load", "foo"]),
        kind if kind.starts_with("list of `Active`") => one_of(&["", "Active", "Completed,InExecution", "foo"]),
        _ => (u32::from(number) + 1).to_string(),
    }
}

proptest! {
    /// The law of the crate: a request that was understood can be written down, and is then understood the same way.
    #[test]
    fn what_was_understood_is_understood_again(
        (endpoint, query) in (0..Endpoint::ALL.len()).prop_flat_map(|n| {
            (Just(Endpoint::ALL[n]), some_query(Endpoint::ALL[n]))
        })
    ) {
        let path = format!("/{}", endpoint.name());
        if let Ok(request) = Request::parse(endpoint.method(), &path, &query) {
            let written = request.query();
            // On the wire it is text.
            let again = Request::parse(endpoint.method(), &path, &Query::parse(&written.encoded()));
            prop_assert_eq!(again.as_ref(), Ok(&request));
            prop_assert_eq!(again.map(|request| request.query()), Ok(written));
        }
    }

    #[test]
    fn no_query_makes_it_panic(n in 0..Endpoint::ALL.len(), text in ".{0,60}", name in 0..40_usize) {
        let endpoint = Endpoint::ALL[n];
        let parameters = Request::parameters(endpoint);
        let mut query = Query::parse(&text);
        if let Some(parameter) = parameters.get(name) {
            query.push(parameter.name, text.clone());
        }
        let _ = Request::parse(endpoint.method(), endpoint.name(), &query);
    }
}

#[test]
fn the_generator_of_queries_makes_valid_ones_for_every_endpoint() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for endpoint in Endpoint::ALL.into_iter().filter(|endpoint| endpoint.facts().served) {
        let strategy = some_query(endpoint);
        let valid = (0..200).any(|_| {
            let query = strategy.new_tree(&mut runner).expect("a query").current();
            Request::parse(endpoint.method(), endpoint.name(), &query).is_ok()
        });
        assert!(valid, "{endpoint}");
    }
}

#[test]
fn every_default_request_is_an_empty_query() {
    for endpoint in Endpoint::ALL.into_iter().filter(|endpoint| endpoint.facts().served) {
        let request = Request::read(endpoint, &Query::default()).expect("served").expect("defaults are fit");
        assert!(request.query().is_empty(), "{endpoint}");
        assert_eq!(request.endpoint(), endpoint);
    }
}

#[test]
fn a_request_as_the_most_important_client_sends_it() {
    let sent = "/rebalance?json=true&dryrun=false&verbose=true&skip_hard_goal_check=true&excluded_topics=__.%2A\
                &replica_movement_strategies=BaseReplicaMovementStrategy&concurrent_partition_movements_per_broker=5\
                &concurrent_leader_movements=100&replication_throttle=1000000&goals=RackAwareGoal%2CCpuCapacityGoal\
                &rebalance_disk=false&concurrent_intra_broker_partition_movements=2";
    let Ok(Request::Rebalance(request)) = parse(Method::Post, sent) else { panic!("a rebalance") };
    assert!(!request.execution.run.dryrun);
    assert!(request.goal_options.optimization.detail.verbose);
    assert!(request.execution.skip_hard_goal_check);
    assert_eq!(request.goal_options.excluded_topics, TopicPattern::new("__.*").ok());
    assert_eq!(request.goal_options.goals, ["RackAwareGoal", "CpuCapacityGoal"]);
    assert_eq!(request.execution.pace.replication_throttle, Some(1_000_000));
    assert_eq!(request.execution.concurrent_partition_movements_per_broker, Some(5));
    assert_eq!(request.concurrent_intra_broker_partition_movements, Some(2));
    assert!(Request::from(request).executes());
}

#[test]
fn names_and_values_are_read_in_any_case() {
    let request = parse(Method::Get, "/STATE?JSON=True&SubStates=executor,MONITOR");
    let substates = BTreeSet::from([Substate::Executor, Substate::Monitor]);
    assert_eq!(request, Ok(State { substates, ..State::default() }.into()));
    let request = parse(Method::Get, "/partition_load?resource=nw_in&data=x");
    assert_eq!(
        request.expect_err("data").message,
        "Unrecognized endpoint parameters in PARTITION_LOAD GET request: [data]."
    );
    let Ok(Request::Rebalance(request)) = parse(Method::Post, "/rebalance?data_from=valid_partitions&dryrun=False")
    else {
        panic!("a rebalance")
    };
    assert_eq!(request.goal_options.data_from, DataFrom::ValidPartitions);
    assert!(!request.execution.run.dryrun);
}

#[test]
fn values_of_every_kind_are_read() {
    let Ok(Request::PartitionLoad(load)) = parse(
        Method::Get,
        "/partition_load?resource=CPU&entries=4&partition=2-5&min_valid_partition_ratio=0.5&brokerid=2,1&topic=a.*",
    ) else {
        panic!("a load")
    };
    assert_eq!(load.resource, Resource::Cpu);
    assert_eq!((load.entries, load.min_valid_partition_ratio), (4, Some(0.5)));
    assert_eq!(load.partition, Some(PartitionRange { first: 2, last: 5 }));
    assert_eq!(load.brokerid, BTreeSet::from([1, 2]));
    let Ok(Request::RemoveDisks(disks)) = parse(Method::Post, "/remove_disks?brokerid_and_logdirs=0-/d-1,0-/d2,1-/d")
    else {
        panic!("disks")
    };
    let dirs = |dirs: &[&str]| dirs.iter().map(|dir| (*dir).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(disks.brokerid_and_logdirs, BTreeMap::from([(0, dirs(&["/d-1", "/d2"])), (1, dirs(&["/d"]))]));
    let Ok(Request::Load(load)) = parse(Method::Get, "/load?time=now") else { panic!("a load") };
    assert_eq!(load.time, Some(TimeOrNow::Now));
    let id = Uuid::from_u128(7);
    let Ok(Request::UserTasks(tasks)) =
        parse(Method::Get, &format!("/user_tasks?user_task_ids={id}&types=Active,foo&endpoints=foo,REBALANCE"))
    else {
        panic!("tasks")
    };
    assert_eq!(tasks.user_task_ids, BTreeSet::from([id]));
    assert_eq!(tasks.types, BTreeSet::from([TaskStatus::Active]));
    assert_eq!(tasks.endpoints, BTreeSet::from([Endpoint::Rebalance]));
    let Ok(Request::Admin(admin)) = parse(Method::Post, "/admin?enable_self_healing_for=disk_failure") else {
        panic!("admin")
    };
    assert_eq!(admin.enable_self_healing_for, BTreeSet::from([AnomalyType::DiskFailure]));
}

#[test]
fn what_cannot_be_is_refused_in_the_originals_words() {
    let strategies = STRATEGIES.join(", ");
    let strategy = format!("Strategy Nope is not supported. Supported: [{strategies}]");
    let cases: Vec<(Method, &str, &str)> = vec![
        (
            Method::Post,
            "/admin?enable_self_healing_for=foo",
            "Unsupported anomaly types in [foo]. Supported: [BROKER_FAILURE, MAINTENANCE_EVENT, DISK_FAILURE, METRIC_ANOMALY, GOAL_VIOLATION, TOPIC_ANOMALY]",
        ),
        (
            Method::Post,
            "/admin?enable_self_healing_for=disk_failure&disable_self_healing_for=disk_failure",
            "The same anomaly cannot be specified in both disable and enable parameters. Intersection: [DISK_FAILURE].",
        ),
        (Method::Post, "/admin", "Nothing executable found in request."),
        (Method::Post, "/admin?reason=x", "Nothing executable found in request."),
        (Method::Post, "/add_broker?brokerid=x", "For input string: \"x\""),
        (Method::Post, "/demote_broker?brokerid=x", "For input string: \"x\""),
        (
            Method::Post,
            "/rebalance?data_from=foo",
            "No enum constant com.linkedin.kafka.cruisecontrol.servlet.parameters.ParameterUtils.DataFrom.FOO",
        ),
        (Method::Get, "/partition_load?entries=abc", "For input string: \"abc\""),
        (Method::Get, "/partition_load?entries=0", "The requested entries must be positive (Requested: 0)."),
        (Method::Get, "/partition_load?entries=99999999999", "For input string: \"99999999999\""),
        (
            Method::Get,
            "/partition_load?min_valid_partition_ratio=2",
            "The requested minimum partition ratio must be in range [0.0, 1.0] (Requested: 2.0).",
        ),
        (Method::Post, "/rebalance?excluded_topics=%5B", "Unclosed character class near index 0\n[\n^"),
        (Method::Get, "/partition_load?topic=%5B", "Unclosed character class near index 0\n[\n^"),
        (
            Method::Get,
            "/partition_load?resource=foo",
            "Invalid resource type foo. The resource type must be one of the following: CPU, DISK, NW_IN, NW_OUT",
        ),
        (
            Method::Get,
            "/state?substates=nosuch",
            "Unsupported substates in [nosuch]. Supported: [ANALYZER, MONITOR, EXECUTOR, ANOMALY_DETECTOR]",
        ),
        (Method::Post, "/rebalance?concurrent_leader_movements=abc", "For input string: \"abc\""),
        (
            Method::Post,
            "/rebalance?concurrent_partition_movements_per_broker=0",
            "The requested movement concurrency must be positive (Requested: 0).",
        ),
        (
            Method::Get,
            "/proposals?goals=RackAwareGoal&ignore_proposal_cache=true",
            "Cannot set ignore_proposal_cache parameter to true when explicitly specifying goals in the request.",
        ),
        (
            Method::Post,
            "/rebalance?goals=RackAwareGoal&use_ready_default_goals=true",
            "Cannot set use_ready_default_goals parameter to true when explicitly specifying goals in the request.",
        ),
        (Method::Get, "/proposals?kafka_assigner=true", "Kafka assigner mode does not support excluding brokers."),
        (
            Method::Get,
            "/proposals?kafka_assigner=true&goals=RackAwareGoal&exclude_recently_removed_brokers=false",
            "Kafka assigner mode does not support explicitly specifying goals in request.",
        ),
        (
            Method::Post,
            "/rebalance?rebalance_disk=true&goals=RackAwareGoal",
            "Rebalance disk mode does not support explicitly specifying goals in request.",
        ),
        (Method::Get, "/load?time=foo", "For input string: \"foo\""),
        (
            Method::Get,
            "/load?capacity_only=true&time=NOW",
            "Cannot set capacity_only parameter to true when explicitly specifying time in the request.",
        ),
        (
            Method::Get,
            "/load?start=1800000000000&end=1600000000000",
            "Invalid time range. Start time must be smaller than end time. Got: [1800000000000, 1600000000000]",
        ),
        (
            Method::Get,
            "/load?time=NOW&end=1600000000000",
            "Parameter time and parameter end are mutually exclusive and should not be specified in the same request.",
        ),
        (
            Method::Get,
            "/partition_load?max_load=true&avg_load=true",
            "Parameters to ask for max and avg load are mutually exclusive to each other.",
        ),
        (Method::Post, "/add_broker", "Target broker ID is not provided for ADD_BROKER request"),
        (Method::Post, "/remove_broker", "Target broker ID is not provided for REMOVE_BROKER request"),
        (Method::Post, "/demote_broker", "No target broker ID or target disk logdir is specified to demote."),
        (Method::Get, "/state?dryrun=true", "Unrecognized endpoint parameters in STATE GET request: [dryrun]."),
        (
            Method::Post,
            "/pause_sampling?dryrun=true",
            "Unrecognized endpoint parameters in PAUSE_SAMPLING POST request: [dryrun].",
        ),
        (
            Method::Post,
            "/rebalance?foo=1&Bar=2",
            "Unrecognized endpoint parameters in REBALANCE POST request: [Bar, foo].",
        ),
        (
            Method::Post,
            "/remove_broker?brokerid=3&destination_broker_ids=3",
            "No overlap is allowed between the specified destination broker ids and broker ids. Intersection: [3].",
        ),
        (Method::Post, "/remove_disks?brokerid_and_logdirs=abc", "begin 0, end -1, length 3"),
        (
            Method::Post,
            "/rebalance?stop_ongoing_execution=true",
            "stop_ongoing_execution and dryrun cannot both be set to true.",
        ),
        (
            Method::Post,
            "/remove_disks?stop_ongoing_execution=true&brokerid_and_logdirs=0-/d",
            "stop_ongoing_execution and dryrun cannot both be set to true.",
        ),
        (
            Method::Post,
            "/rebalance?replication_throttle=-1",
            "Requested rebalance throttle must be non-negative (Requested: -1).",
        ),
        (Method::Post, "/rebalance?dryrun=false&replica_movement_strategies=Nope", &strategy),
        (Method::Get, "/user_tasks?user_task_ids=foo", "Invalid UUID string: foo"),
        (
            Method::Post,
            "/rebalance?review_id=1",
            "review_id parameter is not relevant when two-step verification is disabled.",
        ),
        (
            Method::Post,
            "/rebalance?proposal_id=1",
            "proposal_id says which proposal to carry out: it needs dryrun=false.",
        ),
    ];
    for (method, sent, text) in cases {
        let refusal = parse(method, sent).expect_err(sent);
        assert_eq!((refusal.status, refusal.message.as_str()), (400, text), "{sent}");
    }
}

#[test]
fn what_looks_wrong_and_is_accepted_is_accepted_here_too() {
    for (method, sent) in [
        (Method::Get, "/partition_load?partition=5-2"),
        (Method::Post, "/rebalance?concurrent_partition_movements_per_broker=99999"),
        (Method::Get, "/state?substates=executor&SUBSTATES=monitor"),
        (Method::Get, "/x/state"),
        (Method::Post, "/rebalance?execution_progress_check_interval_ms=1"),
        (Method::Post, "/rebalance?replica_movement_strategies=Nope"),
        (Method::Post, "/remove_disks"),
        (Method::Get, "/user_tasks?endpoints=foo"),
        (Method::Get, "/user_tasks?types=foo"),
        (Method::Post, "/rebalance?verbose=yes"),
        (Method::Post, "/rebalance?goals="),
    ] {
        assert!(parse(method, sent).is_ok(), "{sent}");
    }
}

#[test]
fn endpoints_that_are_not_there_are_refused_before_their_parameters_are_read() {
    for (method, sent, status) in [
        (Method::Get, "/train?start=x", 501),
        (Method::Get, "/bootstrap", 501),
        (Method::Post, "/rightsize", 501),
        (Method::Post, "/topic_configuration?topic=a&replication_factor=3", 501),
        (Method::Get, "/review_board", 403),
        (Method::Post, "/review?approve=1", 403),
        (Method::Get, "/nosuch", 404),
        (Method::Get, "/rebalance", 404),
    ] {
        assert_eq!(parse(method, sent).expect_err(sent).status, status, "{sent}");
    }
}

#[test]
fn parameters_of_a_form_count_too() {
    let query = Query::parse("json=true").with_form("brokerid=1%2C2");
    let Ok(Request::AddBroker(request)) = Request::parse(Method::Post, "/add_broker", &query) else {
        panic!("brokers")
    };
    assert_eq!(request.brokerid, BTreeSet::from([1, 2]));
}

#[test]
fn the_original_understands_requests_that_use_nothing_of_ours() {
    let request: Request = Rebalance::default().into();
    assert_eq!(request.query().encoded(), "");
    let run = Run { dryrun: false, proposal_id: Some("ab".to_owned()), ..Run::default() };
    let ours = Rebalance { execution: Execution { run, ..Execution::default() }, ..Rebalance::default() };
    assert_eq!(Request::from(ours).query().encoded(), "proposal_id=ab&dryrun=false");
}
