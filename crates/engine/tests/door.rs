//! The door with a real executor behind it, on simulated brokers, under paused time.

mod office;
mod stage;

use std::{collections::BTreeSet, time::Duration};

use evenkeel_engine::serve::Peer;
use evenkeel_rest::{
    Answer, Endpoint, Method,
    body::state::Phase,
    client::{Basic, Client},
    parameter::{Substate, TaskStatus},
    request::{self, Rebalance, StopProposalExecution},
};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use office::Office;
use tower::ServiceExt;

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

async fn send(office: &Office, request: Request<Full<bytes::Bytes>>) -> Got {
    let response = office.router.clone().oneshot(request.map(axum::body::Body::new)).await.unwrap();
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

async fn ask(office: &Office, method: &str, path: &str) -> Got {
    send(office, asking(method, &format!("/kafkacruisecontrol{path}"), &[])).await
}

fn client(office: &Office) -> Client<office::Service> {
    Client::new(office.service(), "http://engine:9090/kafkacruisecontrol".parse().unwrap())
}

fn executing() -> Rebalance {
    let mut asked = Rebalance::default();
    asked.execution.run.dryrun = false;
    asked.execution.run.reason = Some("a test".to_owned());
    asked
}

fn executor_only() -> request::State {
    request::State { substates: [Substate::Executor].into(), verbose: true, ..Default::default() }
}

#[tokio::test(start_paused = true)]
async fn every_endpoint_answers_in_both_forms_and_to_its_own_method_alone() {
    let office = Office::open().await;
    office.let_through();
    for endpoint in Endpoint::ALL {
        let (method, other) = match endpoint.method() {
            Method::Get => ("GET", "POST"),
            Method::Post => ("POST", "GET"),
        };
        let path = match endpoint {
            Endpoint::Admin => "/admin?concurrent_leader_movements=3&".to_owned(),
            Endpoint::AddBroker | Endpoint::RemoveBroker | Endpoint::DemoteBroker => {
                format!("/{}?brokerid=1&", endpoint.name())
            }
            _ => format!("/{}?", endpoint.name()),
        };
        let wanted = match endpoint {
            Endpoint::Review | Endpoint::ReviewBoard => 403,
            Endpoint::Permissions => 400,
            Endpoint::PartitionLoad => 500,
            _ if endpoint.facts().served => 200,
            _ => 501,
        };
        let (json, text) = (
            ask(&office, method, &format!("{path}json=true")).await,
            ask(&office, method, path.trim_end_matches(['?', '&'])).await,
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
        let wrong = ask(&office, other, &format!("/{}?json=true", endpoint.name())).await;
        assert_eq!(wrong.status, 404);
        let start = format!("Unrecognized endpoint in request '/{}'\nSupported {other} endpoints: [", endpoint.name());
        assert!(wrong.error().starts_with(&start), "{}", wrong.error());
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_is_refused_in_the_original_s_words() {
    let office = Office::open().await;
    for (method, path, status) in
        [("PUT", "/state", 405), ("DELETE", "/state", 405), ("HEAD", "/state", 400), ("OPTIONS", "/x", 200)]
    {
        let got = ask(&office, method, path).await;
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
        ("GET", "/partition_load?json=true", "Error processing GET request '/partition_load' due to: 'no such luck'."),
    ] {
        let got = ask(&office, method, path).await;
        assert!(got.error().starts_with(text), "{}", got.error());
        assert!(got.header("set-cookie").unwrap().starts_with("JSESSIONID="));
        assert_eq!(got.header("expires"), Some("Thu, 01 Jan 1970 00:00:00 GMT"));
    }
    assert_eq!(ask(&office, "POST", "/admin").await.body, "Nothing executable found in request.");
    let outside = send(&office, asking("GET", "/elsewhere", &[])).await;
    assert_eq!((outside.status.as_u16(), outside.header("cruise-control-version")), (404, None));
}

#[tokio::test(start_paused = true)]
async fn a_task_is_followed_by_its_id() {
    let office = Office::open().await;
    let path = "/kafkacruisecontrol/load?json=true";
    let first = send(&office, asking("GET", path, &[])).await;
    assert_eq!(first.status, 202);
    let progress = first.json();
    assert_eq!(progress["progress"][0]["operation"], "Get broker stats");
    assert_eq!(progress["progress"][0]["operationProgress"][0]["step"], "PENDING");
    assert_eq!(progress["progress"][0]["operationProgress"][1]["completionPercentage"], 0.0);
    let id = first.header("user-task-id").unwrap();
    let other =
        send(&office, asking("GET", "/kafkacruisecontrol/load?json=true&capacity_only=true", &[("user-task-id", id)]))
            .await;
    assert_eq!(other.status, 500);
    assert!(other.error().contains(&format!("Unexpected header {id} (value: User-Task-ID) in the request.")));
    assert_eq!(other.header("user-task-id"), None);
    let malformed = send(&office, asking("GET", path, &[("user-task-id", "foo")])).await;
    assert!(malformed.error().contains("Invalid UUID string: foo"));
    let again = send(&office, asking("GET", path, &[("user-task-id", id)])).await;
    assert_eq!((again.status.as_u16(), again.header("user-task-id")), (202, Some(id)));
    office.let_through();
    for _ in 0..2 {
        let done = send(&office, asking("GET", path, &[("user-task-id", id)])).await;
        assert_eq!((done.status.as_u16(), done.header("user-task-id")), (200, Some(id)));
    }
    let schema = send(&office, asking("GET", "/kafkacruisecontrol/load?json=true&get_response_schema=true", &[])).await;
    assert!(schema.header("cruise-control-json-schema").unwrap().contains("\"type\": \"object\""));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_only_keeps_cookies_finds_its_task_until_it_has_the_answer() {
    let office = Office::open().await;
    let path = "/kafkacruisecontrol/load";
    let first = send(&office, asking("GET", path, &[])).await;
    assert_eq!(first.status, 202);
    assert!(first.body.starts_with("Get broker stats:\n"), "{}", first.body);
    let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let id = first.header("user-task-id").unwrap();
    let second = send(&office, asking("GET", path, &[("cookie", &cookie)])).await;
    assert_eq!(
        (second.status.as_u16(), second.header("user-task-id"), second.header("set-cookie")),
        (202, Some(id), None)
    );
    office.let_through();
    // The answer may be there before the client asks for it again.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let third = send(&office, asking("GET", path, &[("cookie", &cookie)])).await;
    assert_eq!((third.status.as_u16(), third.header("user-task-id")), (200, Some(id)));
    let fourth = send(&office, asking("GET", path, &[("cookie", &cookie)])).await;
    assert_ne!(fourth.header("user-task-id"), Some(id));
}

#[tokio::test(start_paused = true)]
async fn too_many_tasks_are_refused_but_a_look_and_a_stop_never_are() {
    let office = Office::open().await;
    for _ in 0..5 {
        assert_eq!(ask(&office, "GET", "/load?json=true").await.status, 202);
    }
    let refused = ask(&office, "GET", "/load?json=true").await;
    assert_eq!((refused.status.as_u16(), refused.header("user-task-id")), (500, None));
    let text = "There are already 5 active user tasks, which has reached the servlet capacity.";
    assert!(refused.error().contains(text), "{}", refused.error());
    assert_eq!(ask(&office, "GET", "/state?json=true").await.status, 200);
    assert_eq!(ask(&office, "POST", "/stop_proposal_execution?json=true").await.status, 200);
    let all = ask(&office, "GET", "/user_tasks?json=true&types=Active&endpoints=load").await.json();
    assert_eq!(all["userTasks"].as_array().unwrap().len(), 5);
    assert_eq!(all["userTasks"][0]["ClientIdentity"], "10.1.2.3");
    assert_eq!(all["userTasks"][0]["RequestURL"], "GET /kafkacruisecontrol/load?json=true");
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_ours_ends_the_task_and_nothing_else() {
    let office = Office::open().await;
    let got = ask(&office, "GET", "/proposals?json=true&verbose=true").await;
    assert_eq!(got.status, 500);
    assert!(got.error().contains("The engine failed while it worked on the request."), "{}", got.error());
    assert_eq!(ask(&office, "GET", "/state").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn parameters_come_from_the_body_too_and_a_body_has_an_end() {
    let office = Office::open().await;
    let form = |body: String| {
        let mut request = asking(
            "POST",
            "/kafkacruisecontrol/admin?json=true",
            &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
        );
        *request.body_mut() = Full::from(body);
        request
    };
    let got = send(&office, form("concurrent_leader_movements=7".to_owned())).await;
    assert_eq!(got.json()["ongoingConcurrencyChangeRequest"], "Cluster Leadership movement concurrency is set to 7\n");
    let got = send(&office, form("x".repeat(100_000))).await;
    assert_eq!(got.status, 413);
    let too_high = send(&office, form("concurrent_leader_movements=99999".to_owned())).await;
    assert_eq!(too_high.status, 500);
}

#[tokio::test(start_paused = true)]
async fn only_those_come_in_who_may() {
    let office = Office::guarded("boss: secret,ADMIN\nuser: pw,USER\nviewer: look,VIEWER\nguest: none\n").await;
    let as_user = |user: &str, password: &str| {
        client(&office).with_credentials({
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
    let Answer::Unauthorised { status: 403 } = as_user("user", "pw").ask(&executing()).await.answer else {
        panic!("a user may not rebalance");
    };
    let Answer::Ready(permissions) = as_user("viewer", "look").ask(&request::Permissions::default()).await.answer
    else {
        panic!("everybody may ask what he may");
    };
    assert_eq!(permissions.roles, ["VIEWER"]);
    let anonymous = ask(&office, "GET", "/state").await;
    assert_eq!(anonymous.status, 401);
    assert_eq!(anonymous.header("www-authenticate"), Some("basic realm=\"DefaultLoginService\""));
    assert_eq!(anonymous.header("cruise-control-version"), None);
    assert_eq!(ask(&office, "GET", "/nosuch").await.status, 404);
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(send(&office, asking("GET", path, &[])).await.status, 200, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn pages_of_other_origins_see_what_they_need() {
    let office = Office::with(|settings| {
        settings.webserver.cors = Some(evenkeel_engine::config::webserver::Cors {
            origin: "https://ui".to_owned(),
            methods: "OPTIONS, GET, POST".to_owned(),
            headers: "User-Task-ID".to_owned(),
        });
    })
    .await;
    let got = ask(&office, "GET", "/state").await;
    assert_eq!(got.header("access-control-allow-origin"), Some("https://ui"));
    assert_eq!(got.header("access-control-expose-headers"), Some("User-Task-ID"));
    assert_eq!(got.header("access-control-allow-methods"), None);
    let asked = ask(&office, "OPTIONS", "/state").await;
    assert_eq!(asked.header("access-control-allow-methods"), Some("OPTIONS, GET, POST"));
    assert_eq!(asked.header("access-control-max-age"), Some("1728000"));
}

#[tokio::test(start_paused = true)]
async fn a_run_is_begun_seen_and_ends_its_task() {
    let office = Office::open().await;
    let client = client(&office);
    let reply = client.ask(&executing()).await;
    assert!(matches!(reply.answer, Answer::Ready(_)), "{:?}", reply.answer);
    let id = reply.task.unwrap();
    let second = client.ask(&executing()).await;
    assert!(matches!(second.answer, Answer::Busy(_)), "{:?}", second.answer);
    assert_eq!(office.status_of(second.task.unwrap()).await, TaskStatus::CompletedWithError);
    let mut phases = BTreeSet::new();
    let mut most = 0;
    loop {
        let status = office.status_of(id).await;
        let Answer::Ready(state) = client.ask(&executor_only()).await.answer else { panic!("state answers") };
        let executor = state.executor_state.unwrap();
        phases.insert(executor.phase.name());
        if let Phase::InterBroker(it) = &executor.phase {
            assert!(it.finished_data_movement >= most, "bytes never go back");
            most = it.finished_data_movement;
            assert_eq!(
                (it.total_data_to_move, it.num_total_partition_movements),
                (12 * 20 * 1_000_000 / (1024 * 1024), 12)
            );
            assert!(it.tasks.is_some());
        }
        let Some(trigger) = executor.trigger else { break };
        assert_eq!(trigger.triggered_user_task_id, id.to_string());
        assert!(evenkeel_rest::reason::date_of(&trigger.triggered_task_reason).is_some(), "{trigger:?}");
        // Asked before the state was: it may be over by now.
        assert_eq!(status, TaskStatus::InExecution);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(most > 0, "bytes are counted as they are copied");
    assert!(phases.contains("INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"), "{phases:?}");
    assert!(phases.contains("LEADER_MOVEMENT_TASK_IN_PROGRESS"), "{phases:?}");
    office.stage.assert_done("begun over HTTP");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(office.status_of(id).await, TaskStatus::Completed);
    let metrics = send(&office, asking("GET", "/metrics", &[])).await.body;
    assert!(
        metrics.contains("kafka_cruisecontrol_executor_execution_started_non_kafka_assigner_value 1\n"),
        "{metrics}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_over_when_kafka_shows_it() {
    let office = Office::open().await;
    let client = client(&office);
    let id = client.ask(&executing()).await.task.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let admin = request::Admin { concurrent_partition_movements_per_broker: Some(2), ..Default::default() };
    assert!(matches!(client.ask(&admin).await.answer, Answer::Ready(_)));
    tokio::time::sleep(Duration::from_millis(600)).await;
    let Answer::Ready(state) = client.ask(&executor_only()).await.answer else { panic!("state answers") };
    let Phase::InterBroker(moving) = state.executor_state.unwrap().phase else { panic!("replicas move") };
    assert_eq!(moving.maximum_concurrent_partition_movements_per_broker, 2);
    assert!(matches!(client.ask(&StopProposalExecution::default()).await.answer, Answer::Ready(_)));
    office.executor().idle().await;
    office.stage.assert_at_rest("stopped over HTTP");
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(office.status_of(id).await, TaskStatus::CompletedWithError);
    assert_eq!(office.executor().tally().stopped, 1);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_dies_in_the_middle_is_taken_up_where_it_was() {
    let office = Office::open().await;
    let id = client(&office).ask(&executing()).await.task.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let office = office.reopened().await;
    let Answer::Ready(state) = client(&office).ask(&executor_only()).await.answer else { panic!("state answers") };
    let executor = state.executor_state.unwrap();
    assert_eq!(executor.trigger.unwrap().triggered_user_task_id, id.to_string());
    assert_eq!(executor.recently_removed_brokers, [7]);
    let tasks = request::UserTasks { user_task_ids: [id].into(), fetch_completed_task: true, ..Default::default() };
    let Answer::Ready(tasks) = client(&office).ask(&tasks).await.answer else { panic!("user_tasks answers") };
    assert_eq!(tasks.user_tasks[0].status, TaskStatus::InExecution);
    assert!(tasks.user_tasks[0].optimization_result().is_some());
    assert!(matches!(client(&office).ask(&executing()).await.answer, Answer::Busy(_)));
    office.executor().idle().await;
    office.stage.assert_done("after a death");
    // The next life knows how it ended.
    let office = office.reopened().await;
    assert_eq!(office.status_of(id).await, TaskStatus::Completed);
    let admin = request::Admin { drop_recently_removed_brokers: [7].into(), ..Default::default() };
    let Answer::Ready(answer) = client(&office).ask(&admin).await.answer else { panic!("admin answers") };
    assert!(
        answer.drop_recent_brokers_request.unwrap().starts_with("Dropped recently removed brokers (requested: [7]")
    );
    let office = office.reopened().await;
    assert!(office.executor().history().removed.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_is_shut_out_stops_and_says_so() {
    let older = Office::open().await;
    client(&older).ask(&executing()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let newer = older.beside().await;
    newer.executor().idle().await;
    newer.stage.assert_done("taken over");
    older.executor().idle().await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let ready = send(&older, asking("GET", "/readyz", &[])).await;
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("Another engine has taken over"), "{}", ready.body);
    assert_eq!(send(&newer, asking("GET", "/readyz", &[])).await.status, 200);
    let refused = ask(&older, "POST", "/rebalance?dryrun=false&json=true").await;
    assert_eq!(refused.status, 503);
}

#[tokio::test(start_paused = true)]
async fn while_kafka_cannot_be_reached_it_waits_and_says_so() {
    let office = Office::shut().await;
    office.cut(true);
    let opening = office.opened();
    let looking = async {
        tokio::time::sleep(Duration::from_secs(300)).await;
        let ready = send(&office, asking("GET", "/readyz", &[])).await;
        assert_eq!(ready.status, 503);
        assert!(ready.body.contains("Kafka cannot be reached"), "{}", ready.body);
        assert_eq!(send(&office, asking("GET", "/healthz", &[])).await.status, 200);
        assert_eq!(ask(&office, "GET", "/load?json=true").await.status, 503);
        office.cut(false);
    };
    tokio::join!(opening, looking);
    assert_eq!(send(&office, asking("GET", "/readyz", &[])).await.status, 200);
    assert_eq!(ask(&office, "GET", "/state?json=true").await.status, 200);
}
