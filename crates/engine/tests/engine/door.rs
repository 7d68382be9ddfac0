//! The door of a whole engine, on simulated brokers, under paused time.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use evenkeel_engine::{
    config::{properties::Properties, settings::Settings},
    metrics::Page,
    serve::{Answered, Asked, Desk, Door, DoorSettings, Peer, Steps, router},
    tasks::UserTask,
};
use evenkeel_kafka::Error;
use evenkeel_rest::{
    Answer, Endpoint, Failure, Method, Request as Asks,
    body::state::Phase,
    client::Basic,
    parameter::{Substate, TaskStatus},
    request::{self, StopProposalExecution},
};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use tower::ServiceExt;
use uuid::Uuid;

use crate::lives::{Life, PATIENCE, executing, removing, spread, task};
use crate::stage::Stage;

/// What came back.
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn error(&self) -> String {
        self.json()["errorMessage"].as_str().unwrap().to_owned()
    }
}

async fn send(life: &Life, request: Request<Full<bytes::Bytes>>) -> Got {
    let response = life.router.clone().oneshot(request.map(axum::body::Body::new)).await.unwrap();
    let (head, body) = response.into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    Got { status: head.status, headers: head.headers, body }
}

fn asking(method: &str, path: &str, headers: &[(&str, &str)]) -> Request<Full<bytes::Bytes>> {
    let mut request = Request::builder().method(method).uri(path).extension(Peer("10.1.2.3".to_owned()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::default()).unwrap()
}

async fn ask(life: &Life, method: &str, path: &str) -> Got {
    send(life, asking(method, &format!("/kafkacruisecontrol{path}"), &[])).await
}

/// Goals that need no more than counting.
const COUNTING: &str = "goals=ReplicaDistributionGoal&skip_hard_goal_check=true";

/// A cluster whose brokers are not missed while nobody reaches them, and an engine that is ready, and soon tells who
/// asks to come back.
async fn ready(more: &str) -> (Stage, Life) {
    let stage = Stage::with_session_timeout(24 * 3_600_000);
    let life = stage.engine_with(&format!("webserver.request.maxBlockTimeMs=300\n{more}"));
    while life.got("/readyz").await.0 != 200 {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // Two looks make a window.
    tokio::time::sleep(Duration::from_secs(30)).await;
    (stage, life)
}

fn executor_only() -> request::State {
    request::State { substates: [Substate::Executor].into(), verbose: true, ..Default::default() }
}

#[tokio::test(start_paused = true)]
async fn every_endpoint_answers_in_both_forms_and_to_its_own_method_alone() {
    let (_stage, life) = ready("").await;
    for endpoint in Endpoint::ALL {
        let (method, other) = match endpoint.method() {
            Method::Get => ("GET", "POST"),
            Method::Post => ("POST", "GET"),
        };
        let path = match endpoint {
            Endpoint::Admin => "/admin?concurrent_leader_movements=3&".to_owned(),
            Endpoint::AddBroker | Endpoint::RemoveBroker => format!("/{}?brokerid=3&{COUNTING}&", endpoint.name()),
            Endpoint::DemoteBroker => "/demote_broker?brokerid=1&".to_owned(),
            Endpoint::RemoveDisks => "/remove_disks?brokerid_and_logdirs=0-/d&".to_owned(),
            Endpoint::Rebalance | Endpoint::FixOfflineReplicas => format!("/{}?{COUNTING}&", endpoint.name()),
            Endpoint::Proposals => "/proposals?goals=ReplicaDistributionGoal&".to_owned(),
            _ => format!("/{}?", endpoint.name()),
        };
        let wanted = match endpoint {
            Endpoint::Review | Endpoint::ReviewBoard => 403,
            Endpoint::Permissions => 400,
            // Nothing is offline, and no capacity is given by directory.
            Endpoint::FixOfflineReplicas | Endpoint::RemoveDisks => 500,
            _ if endpoint.facts().served => 200,
            _ => 501,
        };
        let (json, text) = (
            ask(&life, method, &format!("{path}json=true")).await,
            ask(&life, method, path.trim_end_matches(['?', '&'])).await,
        );
        assert_eq!((json.status.as_u16(), text.status.as_u16()), (wanted, wanted), "{endpoint}: {}", json.body);
        assert_eq!(json.json()["version"], 1, "{endpoint}");
        assert_eq!(json.header("content-type"), Some("application/json;charset=utf-8"));
        assert_eq!(text.header("content-type"), Some("text/plain;charset=utf-8"));
        for got in [&json, &text] {
            assert_eq!(got.header("cruise-control-version"), Some("2.5.146"), "{endpoint}");
            let has_task = endpoint.facts().served;
            assert_eq!(got.header("user-task-id").is_some(), has_task, "{endpoint}");
        }
        let wrong = ask(&life, other, &format!("/{}?json=true", endpoint.name())).await;
        assert_eq!(wrong.status, 404);
        let start = format!("Unrecognized endpoint in request '/{}'\nSupported {other} endpoints: [", endpoint.name());
        assert!(wrong.error().starts_with(&start), "{}", wrong.error());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_is_refused_in_the_original_s_words() {
    let (_stage, life) = ready("").await;
    for (method, path, status) in
        [("PUT", "/state", 405), ("DELETE", "/state", 405), ("HEAD", "/state", 400), ("OPTIONS", "/x", 200)]
    {
        let got = ask(&life, method, path).await;
        assert_eq!((got.status.as_u16(), got.body.as_str()), (status, ""), "{method}");
    }
    for (method, path, text) in [
        ("GET", "?json=true", "Unrecognized endpoint in request '/'"),
        ("GET", "/nosuch?json=true", "Unrecognized endpoint in request '/nosuch'"),
        ("GET", "/state?foo=1&Bar=2&json=true", "Unrecognized endpoint parameters in STATE GET request: [Bar, foo]."),
        ("POST", "/admin?json=true", "Nothing executable found in request."),
        (
            "POST",
            "/rebalance?stop_ongoing_execution=true&json=true",
            "stop_ongoing_execution and dryrun cannot both be set to true.",
        ),
        ("GET", "/user_tasks?user_task_ids=foo&json=true", "Invalid UUID string: foo"),
        (
            "GET",
            "/permissions?json=true",
            "Bad GET request '/permissions' due to 'Unable to retrieve privilege information for an unsecure connection.'.",
        ),
        (
            "POST",
            "/fix_offline_replicas?json=true&goals=ReplicaDistributionGoal&skip_hard_goal_check=true",
            "Error processing POST request '/fix_offline_replicas' due to: 'com.linkedin.kafka.cruisecontrol.exception",
        ),
    ] {
        let got = ask(&life, method, path).await;
        assert!(got.error().starts_with(text), "{}", got.error());
        assert!(got.header("set-cookie").unwrap().starts_with("JSESSIONID="));
        assert_eq!(got.header("expires"), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
    }
    assert_eq!(ask(&life, "POST", "/admin").await.body, "Nothing executable found in request.");
    let outside = send(&life, asking("GET", "/elsewhere", &[])).await;
    assert_eq!((outside.status.as_u16(), outside.header("cruise-control-version")), (404, None));
}

/// A plan for which the cluster has to be looked at.
const PLAN: &str = "/kafkacruisecontrol/rebalance?goals=ReplicaDistributionGoal&skip_hard_goal_check=true&json=true";

/// Nobody reaches the brokers any more, and the latest look is too old to plan on.
async fn out_of_reach(stage: &Stage) {
    stage.cut(true);
    tokio::time::sleep(Duration::from_millis(1_500)).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_is_followed_by_its_id() {
    let (stage, life) = ready("").await;
    out_of_reach(&stage).await;
    let first = send(&life, asking("POST", PLAN, &[])).await;
    assert_eq!(first.status, 202, "{}", first.body);
    let progress = first.json();
    assert_eq!(progress["progress"][0]["operation"], "Rebalance");
    assert_eq!(progress["progress"][0]["operationProgress"][0]["step"], "PENDING");
    assert_eq!(progress["progress"][0]["operationProgress"][1]["completionPercentage"], 0.0);
    let id = first.header("user-task-id").unwrap();
    let other = send(&life, asking("POST", &format!("{PLAN}&verbose=true"), &[("user-task-id", id)])).await;
    assert_eq!(other.status, 500);
    assert!(other.error().contains(&format!("Unexpected header {id} (value: User-Task-ID) in the request.")));
    assert_eq!(other.header("user-task-id"), None);
    let malformed = send(&life, asking("POST", PLAN, &[("user-task-id", "foo")])).await;
    assert!(malformed.error().contains("Invalid UUID string: foo"));
    let again = send(&life, asking("POST", PLAN, &[("user-task-id", id)])).await;
    assert_eq!((again.status.as_u16(), again.header("user-task-id")), (202, Some(id)));
    stage.cut(false);
    tokio::time::sleep(Duration::from_secs(20)).await;
    for _ in 0..2 {
        let done = send(&life, asking("POST", PLAN, &[("user-task-id", id)])).await;
        assert_eq!((done.status.as_u16(), done.header("user-task-id")), (200, Some(id)), "{}", done.body);
    }
    let schema = send(&life, asking("GET", "/kafkacruisecontrol/load?json=true&get_response_schema=true", &[])).await;
    assert!(schema.header("cruise-control-json-schema").unwrap().contains("\"type\": \"object\""));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_keeps_cookies_finds_its_task_until_it_has_the_answer() {
    let (stage, life) = ready("").await;
    out_of_reach(&stage).await;
    let path = PLAN.trim_end_matches("&json=true");
    let first = send(&life, asking("POST", path, &[])).await;
    assert_eq!(first.status, 202);
    assert!(first.body.starts_with("Rebalance:\n"), "{}", first.body);
    let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let id = first.header("user-task-id").unwrap();
    let second = send(&life, asking("POST", path, &[("cookie", &cookie)])).await;
    assert_eq!(
        (second.status.as_u16(), second.header("user-task-id"), second.header("set-cookie")),
        (202, Some(id), None)
    );
    stage.cut(false);
    // The answer may be there before the client asks for it again.
    tokio::time::sleep(Duration::from_secs(20)).await;
    let third = send(&life, asking("POST", path, &[("cookie", &cookie)])).await;
    assert_eq!((third.status.as_u16(), third.header("user-task-id")), (200, Some(id)));
    let fourth = send(&life, asking("POST", path, &[("cookie", &cookie)])).await;
    assert_ne!(fourth.header("user-task-id"), Some(id));
}

#[tokio::test(start_paused = true)]
async fn too_many_tasks_are_refused_but_a_look_and_a_stop_never_are() {
    let (stage, life) = ready("").await;
    out_of_reach(&stage).await;
    let path = PLAN.trim_start_matches("/kafkacruisecontrol");
    for _ in 0..5 {
        assert_eq!(ask(&life, "POST", path).await.status, 202);
    }
    let refused = ask(&life, "POST", path).await;
    assert_eq!((refused.status.as_u16(), refused.header("user-task-id")), (500, None));
    let text = "There are already 5 active user tasks, which has reached the servlet capacity.";
    assert!(refused.error().contains(text), "{}", refused.error());
    assert_eq!(ask(&life, "GET", "/state?json=true").await.status, 200);
    let stopped = ask(&life, "POST", "/stop_proposal_execution?json=true&stop_external_agent=false").await;
    assert!(!stopped.body.contains(text), "{}", stopped.body);
    let all = ask(&life, "GET", "/user_tasks?json=true&types=Active&endpoints=rebalance").await.json();
    assert_eq!(all["userTasks"].as_array().unwrap().len(), 5);
    assert_eq!(all["userTasks"][0]["ClientIdentity"], "10.1.2.3");
    let url = all["userTasks"][0]["RequestURL"].as_str().unwrap();
    assert!(url.starts_with("POST /kafkacruisecontrol/rebalance?"), "{url}");
}

/// Somebody at the desk who has a fault, which an engine should not.
struct Faulty;

impl Desk for Faulty {
    async fn answer(&self, asked: Asked, _: Steps) -> Result<Answered, Failure> {
        assert!(matches!(asked.request, Asks::State(_)), "a fault of ours");
        Ok(asked.answered(|| "{}".to_owned(), String::new))
    }

    async fn record(&self, _: Uuid, _: &UserTask) -> Result<(), Error> {
        Ok(())
    }

    async fn forget(&self, _: &[(Uuid, Arc<UserTask>)]) -> Result<(), Error> {
        Ok(())
    }

    fn measure(&self, _: &mut Page) {}
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_ours_ends_the_task_and_nothing_else() {
    let stage = Stage::new();
    let properties = Properties::read("bootstrap.servers=sim:9092", |_| None).unwrap();
    let settings = Settings::read(&properties).unwrap().settings;
    let of_door =
        DoorSettings { webserver: settings.webserver, tasks: settings.tasks, answer_within: settings.answer_within };
    let door = Door::new(Arc::new(Faulty), of_door, stage.clock()).unwrap();
    let (executor, tasks) = stage.executor_over(stage.client()).await;
    door.join(&executor, tasks);
    let asked = |path: &str| router(&door).oneshot(asking("GET", path, &[]).map(axum::body::Body::new));
    let failed = asked("/kafkacruisecontrol/proposals?json=true").await.unwrap();
    assert_eq!(failed.status(), 500);
    let body = String::from_utf8(failed.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    assert!(body.contains("The engine failed while it worked on the request."), "{body}");
    assert_eq!(asked("/kafkacruisecontrol/state").await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn parameters_come_from_the_body_too_and_a_body_has_an_end() {
    let (_stage, life) = ready("").await;
    let form = |body: String| {
        let mut request = asking(
            "POST",
            "/kafkacruisecontrol/admin?json=true",
            &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
        );
        *request.body_mut() = Full::from(body);
        request
    };
    let got = send(&life, form("concurrent_leader_movements=7".to_owned())).await;
    assert_eq!(got.json()["ongoingConcurrencyChangeRequest"], "Cluster Leadership movement concurrency is set to 7\n");
    let got = send(&life, form("x".repeat(100_000))).await;
    assert_eq!(got.status, 413);
    let too_high = send(&life, form("concurrent_leader_movements=99999".to_owned())).await;
    assert_eq!(too_high.status, 500);
}

#[tokio::test(start_paused = true)]
async fn only_those_come_in_who_may() {
    let users = std::env::temp_dir().join(format!("evenkeel-users-{}", Uuid::new_v4()));
    std::fs::write(&users, "boss: secret,ADMIN\nuser: pw,USER\nviewer: look,VIEWER\nguest: none\n").unwrap();
    let secured = format!("webserver.security.enable=true\nwebserver.auth.credentials.file={}\n", users.display());
    let (_stage, life) = ready(&secured).await;
    std::fs::remove_file(users).unwrap();
    let as_user = |user: &str, password: &str| {
        life.asking().with_credentials({
            let basic = Basic::new(user, password);
            move || Some(basic.clone())
        })
    };
    let state = request::State::default();
    for (user, password, wanted) in [
        ("boss", "secret", 0),
        ("user", "pw", 0),
        ("viewer", "look", 403),
        ("guest", "none", 403),
        ("boss", "wrong", 401),
        ("nobody", "", 401),
    ] {
        match as_user(user, password).ask(&state).await.answer {
            Answer::Ready(_) => assert_eq!(wanted, 0, "{user}"),
            Answer::Unauthorised { status } => assert_eq!(status, wanted, "{user}"),
            other => panic!("{user}: {other:?}"),
        }
    }
    let Answer::Unauthorised { status: 403 } = as_user("user", "pw").ask(&executing(None)).await.answer else {
        panic!("a user may not rebalance");
    };
    let Answer::Ready(permissions) = as_user("viewer", "look").ask(&request::Permissions::default()).await.answer
    else {
        panic!("everybody may ask what he may");
    };
    assert_eq!(permissions.roles, ["VIEWER"]);
    let anonymous = ask(&life, "GET", "/state").await;
    assert_eq!(anonymous.status, 401);
    assert_eq!(anonymous.header("www-authenticate"), Some("basic realm=\"DefaultLoginService\""));
    assert_eq!(anonymous.header("cruise-control-version"), None);
    assert_eq!(ask(&life, "GET", "/nosuch").await.status, 404);
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(send(&life, asking("GET", path, &[])).await.status, 200, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_of_other_origins_see_what_they_need() {
    let cors = "webserver.http.cors.enabled=true\nwebserver.http.cors.origin=https://ui\n\
                webserver.http.cors.allowmethods=OPTIONS, GET, POST\nwebserver.http.cors.exposeheaders=User-Task-ID\n";
    let (_stage, life) = ready(cors).await;
    let got = ask(&life, "GET", "/state").await;
    assert_eq!(got.header("access-control-allow-origin"), Some("https://ui"));
    assert_eq!(got.header("access-control-expose-headers"), Some("User-Task-ID"));
    assert_eq!(got.header("access-control-allow-methods"), None);
    let asked = ask(&life, "OPTIONS", "/state").await;
    assert_eq!(asked.header("access-control-allow-methods"), Some("OPTIONS, GET, POST"));
    assert_eq!(asked.header("access-control-max-age"), Some("1728000"));
}

#[tokio::test(start_paused = true)]
async fn a_run_is_begun_seen_and_ends_its_task() {
    let (stage, life) = ready("").await;
    let id = life.begun().await;
    let second = life.client.ask_and_wait(&executing(None), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(second.answer, Answer::Busy(_)), "{:?}", second.answer);
    assert_eq!(life.status_of(task(&second)).await, Some(TaskStatus::CompletedWithError));
    let mut phases = BTreeSet::new();
    let mut most = 0;
    loop {
        let status = life.status_of(id).await;
        let Answer::Ready(state) = life.client.ask(&executor_only()).await.answer else { panic!("state answers") };
        let executor = state.executor_state.unwrap();
        phases.insert(executor.phase.name());
        if let Phase::InterBroker(it) = &executor.phase {
            assert!(it.finished_data_movement >= most, "bytes never go back");
            most = it.finished_data_movement;
            assert!(it.total_data_to_move >= most && it.num_total_partition_movements > 0);
            assert!(it.tasks.is_some());
        }
        let Some(trigger) = executor.trigger else { break };
        assert_eq!(trigger.triggered_user_task_id, id.to_string());
        assert!(evenkeel_rest::reason::date_of(&trigger.triggered_task_reason).is_some(), "{trigger:?}");
        // Asked before the state was: it may be over by now.
        assert_eq!(status, Some(TaskStatus::InExecution));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(most > 0, "bytes are counted as they are copied");
    assert!(phases.contains("INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"), "{phases:?}");
    stage.assert_at_rest("begun over HTTP");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(life.status_of(id).await, Some(TaskStatus::Completed));
    let metrics = send(&life, asking("GET", "/metrics", &[])).await.body;
    assert!(
        metrics.contains("kafka_cruisecontrol_executor_execution_started_non_kafka_assigner_value 1\n"),
        "{metrics}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_over_when_kafka_shows_it() {
    let (stage, life) = ready("").await;
    let id = life.begun().await;
    let admin = request::Admin { concurrent_partition_movements_per_broker: Some(2), ..Default::default() };
    assert!(matches!(life.client.ask(&admin).await.answer, Answer::Ready(_)));
    tokio::time::sleep(Duration::from_millis(1_000)).await;
    let Answer::Ready(state) = life.client.ask(&executor_only()).await.answer else { panic!("state answers") };
    let Phase::InterBroker(moving) = state.executor_state.unwrap().phase else { panic!("replicas move") };
    assert_eq!(moving.maximum_concurrent_partition_movements_per_broker, 2);
    assert!(matches!(life.client.ask(&StopProposalExecution::default()).await.answer, Answer::Ready(_)));
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    stage.assert_at_rest("stopped over HTTP");
    assert_eq!(life.status_of(id).await, Some(TaskStatus::CompletedWithError));
    let metrics = send(&life, asking("GET", "/metrics", &[])).await.body;
    assert!(metrics.contains("kafka_cruisecontrol_executor_execution_stopped_by_user_value 1\n"), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_of_a_removal_stays_forgotten() {
    let (stage, life) = ready("").await;
    life.proposed(&spread()).await;
    let reply = life.client.ask_and_wait(&removing(0), PATIENCE, Duration::from_secs(1)).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
    drop(life);
    // A death in the middle: the next life knows what was asked, what was answered and what it means.
    let life = stage.engine();
    life.until("the next life acts", |phase| *phase != Phase::Idle).await;
    let tasks =
        request::UserTasks { user_task_ids: [task(&reply)].into(), fetch_completed_task: true, ..Default::default() };
    let Answer::Ready(tasks) = life.client.ask(&tasks).await.answer else { panic!("user_tasks answers") };
    assert_eq!(tasks.user_tasks[0].status, TaskStatus::InExecution);
    assert!(tasks.user_tasks[0].optimization_result().is_some());
    let removed = |state: evenkeel_rest::body::State| state.executor_state.unwrap().recently_removed_brokers;
    let Answer::Ready(state) = life.client.ask(&executor_only()).await.answer else { panic!("state answers") };
    assert_eq!(removed(state), [0]);
    life.until("it is over", |phase| *phase == Phase::Idle).await;
    let admin = request::Admin { drop_recently_removed_brokers: [0].into(), ..Default::default() };
    let Answer::Ready(answer) = life.client.ask(&admin).await.answer else { panic!("admin answers") };
    let said = answer.drop_recent_brokers_request.unwrap();
    assert!(said.starts_with("Dropped recently removed brokers (requested: [0]"), "{said}");
    drop(life);
    let life = stage.engine();
    life.until("the next life answers", |phase| *phase == Phase::Idle).await;
    let Answer::Ready(state) = life.client.ask(&executor_only()).await.answer else { panic!("state answers") };
    assert_eq!(removed(state), [] as [i32; 0]);
}

#[tokio::test(start_paused = true)]
async fn who_is_shut_out_in_the_middle_of_a_run_stops_and_says_so() {
    let (stage, older) = ready("").await;
    older.begun().await;
    let newer = stage.engine();
    newer.until("the newer one goes on", |phase| matches!(phase, Phase::InterBroker(_))).await;
    newer.until("the newer one is done", |phase| *phase == Phase::Idle).await;
    stage.assert_at_rest("taken over");
    let ready = send(&older, asking("GET", "/readyz", &[])).await;
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("Another engine has taken over"), "{}", ready.body);
    assert_eq!(send(&newer, asking("GET", "/readyz", &[])).await.status, 200);
    let refused = ask(&older, "POST", "/rebalance?dryrun=false&json=true").await;
    assert_eq!(refused.status, 503);
}

#[tokio::test(start_paused = true)]
async fn while_kafka_cannot_be_reached_it_waits_and_says_so() {
    let stage = Stage::with_session_timeout(24 * 3_600_000);
    stage.cut(true);
    let life = stage.engine();
    for waited in [10, 290] {
        tokio::time::sleep(Duration::from_secs(waited)).await;
        let ready = send(&life, asking("GET", "/readyz", &[])).await;
        assert_eq!(ready.status, 503);
        assert!(ready.body.contains("Kafka cannot be reached"), "{}", ready.body);
        assert_eq!(send(&life, asking("GET", "/healthz", &[])).await.status, 200);
        assert_eq!(ask(&life, "GET", "/load?json=true").await.status, 503);
    }
    stage.cut(false);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(life.got("/readyz").await, (200, "ok\n".to_owned()));
    assert_eq!(ask(&life, "GET", "/state?json=true").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn whoever_may_send_the_same_request_again_is_told_when() {
    let (stage, life) = ready("").await;
    stage.cut(true);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let path = "/kafkacruisecontrol/kafka_cluster_state?json=true";
    let refused = send(&life, asking("GET", path, &[])).await;
    assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (503, Some("5")));
    // With the task's name the same answer comes for ever: its task is over.
    let named = send(&life, asking("GET", path, &[("User-Task-ID", refused.header("user-task-id").unwrap())])).await;
    assert_eq!((named.status.as_u16(), named.header("retry-after")), (503, None));
    assert_eq!(named.body, refused.body);
    stage.cut(false);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(send(&life, asking("GET", path, &[])).await.status, 200);
}
