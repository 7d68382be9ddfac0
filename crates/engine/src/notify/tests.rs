//! Couriers over services that are no network, and the ConfigMap on an API server that is no cluster.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    sync::{Arc, Mutex},
};

use evenkeel_apiserver::http::{Options, Shared, moment::Simulated, router};
use evenkeel_kafka::login::Secret;
use http_body_util::BodyExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::Instant;
use tower::service_fn;

use super::{messages::Letter, post::Patience, *};
use crate::detect::violation_map::{FIXABLE, UNFIXABLE};

fn letter(to: &str) -> Letter {
    Letter { to: Secret::new(to), key: Some(Secret::new("hush")), body: "{}".to_owned() }
}

/// What a receiver got: address, authorization, body.
pub(crate) type Got = Arc<Mutex<Vec<(String, Option<String>, String)>>>;

/// A receiver that answers with these codes in turn, then 200; a code of 0 is no answer at all.
pub(crate) fn receiver(
    codes: &[u16],
) -> (
    Got,
    impl Service<http::Request<Full<Bytes>>, Response = http::Response<()>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static,
) {
    let got = Got::default();
    let (seen, codes) = (Arc::clone(&got), Arc::new(Mutex::new(codes.iter().copied().collect::<VecDeque<_>>())));
    let service = service_fn(move |request: http::Request<Full<Bytes>>| {
        let (seen, code) = (Arc::clone(&seen), codes.lock().unwrap().pop_front().unwrap_or(200));
        async move {
            let (head, body) = request.into_parts();
            let header = head.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
            let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
            seen.lock().unwrap().push((head.uri.to_string(), header, body));
            if code == 0 {
                std::future::pending::<()>().await;
            }
            Ok(http::Response::builder().status(code).body(()).unwrap())
        }
    });
    (got, service)
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_again_and_what_may_not_is_not() {
    for (codes, tries, told) in [
        (&[][..], 1, Ok(())),
        (&[503, 0, 429], 4, Ok(())),
        (&[503; 9], 4, Err("the receiver answered 503 Service Unavailable")),
        (&[0; 9], 4, Err("no answer within 10s")),
        (&[403], 1, Err("the receiver answered 403 Forbidden")),
    ] {
        let (got, service) = receiver(codes);
        let result = Post::new(service, Patience::default()).send(&letter("http://alerta/alert")).await;
        assert_eq!(result.map_err(|error| error.to_string()), told.map_err(str::to_owned));
        let got = got.lock().unwrap();
        assert_eq!(got.len(), tries, "{codes:?}");
        assert_eq!(got[0], ("http://alerta/alert".to_owned(), Some("Key hush".to_owned()), "{}".to_owned()));
    }
}

#[tokio::test]
async fn no_error_shows_an_address_or_a_key() {
    let (_, service) = receiver(&[]);
    let post = Post::new(service, Patience::default());
    let broken_key = Letter { key: Some(Secret::new("hush\n")), ..letter("http://x/") };
    for letter in [letter("http://x/hush hush"), broken_key] {
        let error = post.send(&letter).await.unwrap_err();
        let said = format!("{error} {error:?} {} {}", error.cause(), error.remedy());
        assert!(matches!(error, Error::Request { .. }) && !said.contains("hush"), "{said}");
    }
}

/// Lets everything run that can, for a while of simulated time.
async fn a_while() {
    tokio::time::sleep(Duration::from_secs(600)).await;
}

fn alert() -> Alert {
    let finding = Finding::BrokerFailure { since: [(3, 0)].into(), fixable: true };
    Alert { id: Uuid::nil(), detected: 0, finding, words: "{…}".to_owned(), mends_at: None, fixing: false }
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_neither_holds_up_the_detectors_nor_swallows_the_rest() {
    let (got, service) = receiver(&[0, 0, 0, 0]);
    let channels = ["http://slow/", "http://quick/"].map(|url| Channel::Webhook { url: Secret::new(url) }).to_vec();
    let courier =
        Courier::start(Outlets { channels, map: None, host: String::new() }, Post::new(service, Patience::default()));
    let begun = Instant::now();
    courier.tell(Notice::Alert(alert()));
    // Far more than can wait: the last ones are dropped.
    (0..2 * WAITING).for_each(|_| courier.tell(Notice::Alert(alert())));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    a_while().await;
    let addresses: Vec<String> = got.lock().unwrap().iter().map(|(address, ..)| address.clone()).collect();
    assert_eq!(addresses[..5], ["http://slow/", "http://slow/", "http://slow/", "http://slow/", "http://quick/"]);
    assert_eq!(addresses.len(), 3 + 2 * WAITING);
}

#[tokio::test(start_paused = true)]
async fn who_cannot_be_reached_is_not_tried_for_each_thing_that_is_wrong() {
    let (got, service) = receiver(&[403; 9]);
    let (url, key) = (Secret::new("http://alerta"), Secret::new("hush"));
    let channels = vec![Channel::Alerta { url, key, environment: None }];
    let outlets = Outlets { channels, map: None, host: String::new() };
    let courier = Courier::start(outlets, Post::new(service, Patience::default()));
    let finding = Finding::BrokerFailure { since: (0..50).map(|broker| (broker, 0)).collect(), fixable: false };
    courier.tell(Notice::Alert(Alert { finding, ..alert() }));
    a_while().await;
    assert_eq!(got.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_never_answers_is_given_up_and_the_next_notice_is_delivered() {
    let silent = service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<Full<Bytes>>, BoxError>>()
    });
    let map = ViolationMap::new(Client::new(silent, "default"), None, "my");
    let (got, service) = receiver(&[]);
    let channels = vec![Channel::Webhook { url: Secret::new("http://x/") }];
    let outlets = Outlets { channels, map: Some(map), host: String::new() };
    let courier = Courier::start(outlets, Post::new(service, Patience::default()));
    courier.tell(judged());
    courier.tell(Notice::Alert(alert()));
    a_while().await;
    assert_eq!(got.lock().unwrap().len(), 1);
}

fn judged() -> Notice {
    Notice::Judged(Judgement { id: id(1), fixable: vec![Goal::RackAware], unfixable: Vec::new() })
}

fn api_server() -> Client {
    let moments = Box::new(Simulated::new(Timestamp::UNIX_EPOCH, 7));
    Client::new(router(Shared::new(Options { moments, ..Options::default() })), "default")
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

async fn shown(client: &Client) -> Option<BTreeMap<String, String>> {
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    api.get_opt("my-goal-violation-map").await.unwrap().map(|map| map.data.unwrap_or_default())
}

const ONE: &str = "- 00000000-0000-0000-0000-000000000001:\n    - RackAwareGoal\n";
const TWO: &str = "- 00000000-0000-0000-0000-000000000002:\n    - CpuCapacityGoal\n";

fn data(pairs: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
    Some(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
}

#[tokio::test]
async fn the_map_is_created_filled_and_cleared_of_what_is_over() {
    let client = api_server();
    let map = ViolationMap::new(client.clone(), None, "my");
    assert_eq!(shown(&client).await, None);
    map.record(id(1), &[Goal::RackAware], &[]).await.unwrap();
    assert_eq!(shown(&client).await, data(&[(FIXABLE, ONE)]));
    map.record(id(2), &[], &[Goal::CpuCapacity]).await.unwrap();
    assert_eq!(shown(&client).await, data(&[(FIXABLE, ONE), (UNFIXABLE, TWO)]));
    map.record(id(3), &[Goal::RackAware], &[]).await.unwrap();
    assert_eq!(shown(&client).await, data(&[(FIXABLE, ONE)]));

    let made = Api::<ConfigMap>::default_namespaced(client.clone()).get(map.name()).await.unwrap();
    assert_eq!(made.metadata.labels.unwrap()["strimzi.io/cluster"], "my");
    let version = made.metadata.resource_version;
    map.record(id(3), &[Goal::RackAware], &[]).await.unwrap();
    let again = Api::<ConfigMap>::default_namespaced(client.clone()).get(map.name()).await.unwrap();
    assert_eq!(again.metadata.resource_version, version, "what is there already is not written again");
    map.record(Uuid::nil(), &[], &[]).await.unwrap();
    assert_eq!(shown(&client).await, data(&[(FIXABLE, "")]), "it healed");
}

#[tokio::test]
async fn what_the_operator_made_keeps_its_owner_and_labels() {
    let client = api_server();
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "kafka", "uid": "1-2"});
    let made: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "my-goal-violation-map",
        "labels": {"app": "x"}, "ownerReferences": [owner]}, "data": {"note": "hi"}}))
    .unwrap();
    api.create(&PostParams::default(), &made).await.unwrap();
    ViolationMap::new(client.clone(), Some("default"), "my").record(id(1), &[Goal::RackAware], &[]).await.unwrap();
    assert_eq!(shown(&client).await, data(&[(FIXABLE, ONE), ("note", "hi")]));
    let metadata = api.get("my-goal-violation-map").await.unwrap().metadata;
    assert_eq!(metadata.labels, made.metadata.labels);
    assert_eq!(metadata.owner_references, made.metadata.owner_references);
}

/// Two who write, each between the other's reading and writing: the operator through this service, before the
/// engine's first `times` writes.
fn meddled(inner: Client, times: usize) -> Client {
    let left = Arc::new(Mutex::new(times));
    let service = service_fn(move |request: http::Request<kube::client::Body>| {
        let (inner, left) = (inner.clone(), Arc::clone(&left));
        async move {
            let meddles = request.method() == http::Method::PUT || request.method() == http::Method::POST;
            let turn = meddles && {
                let mut left = left.lock().unwrap();
                let any = *left > 0;
                *left = left.saturating_sub(1);
                any
            };
            if turn {
                let api = Api::<ConfigMap>::default_namespaced(inner.clone());
                let touched = json!({"metadata": {"name": "my-goal-violation-map"}, "apiVersion": "v1",
                    "kind": "ConfigMap", "data": {"note": left.lock().unwrap().to_string()}});
                let how = PatchParams::apply("operator").force();
                api.patch("my-goal-violation-map", &how, &Patch::Apply(&touched)).await.unwrap();
            }
            inner.send(request).await.map_err(BoxError::from)
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn whoever_was_outrun_reads_again_and_nothing_is_lost() {
    let client = api_server();
    // The first write is a creation that comes too late.
    let map = ViolationMap::new(meddled(client.clone(), 3), None, "my");
    map.record(id(1), &[Goal::RackAware], &[]).await.unwrap();
    assert_eq!(shown(&client).await, data(&[(FIXABLE, ONE), ("note", "0")]));

    let map = ViolationMap::new(meddled(client.clone(), 1_000), None, "my");
    let error = map.record(id(2), &[], &[Goal::CpuCapacity]).await.unwrap_err();
    assert_eq!(error.to_string(), "somebody else changed the ConfigMap 8 times in a row");
    assert!(error.may_pass());
}

#[tokio::test]
async fn the_map_stays_within_its_size_and_unreadable_ones_are_made_good() {
    let client = api_server();
    let api = Api::<ConfigMap>::default_namespaced(client.clone());
    let many: String = (0..5_000).map(|number| format!("- {}:\n    - Goal{number}\n", id(number))).collect();
    let made: ConfigMap = serde_json::from_value(
        json!({"metadata": {"name": "my-goal-violation-map"}, "data": {FIXABLE: many, UNFIXABLE: "{"}}),
    )
    .unwrap();
    api.create(&PostParams::default(), &made).await.unwrap();
    ViolationMap::new(client.clone(), None, "my").record(id(9_999), &[Goal::RackAware], &[]).await.unwrap();
    let shown = shown(&client).await.unwrap();
    assert!(shown[FIXABLE].len() <= 256 * 1024 && shown[FIXABLE].contains(&id(9_999).to_string()));
    assert_eq!(shown.keys().collect::<Vec<_>>(), [FIXABLE]);
}

#[tokio::test(start_paused = true)]
async fn judgements_go_to_the_map_and_alerts_to_the_channels() {
    let client = api_server();
    let (got, service) = receiver(&[]);
    let outlets = Outlets {
        channels: vec![Channel::Webhook { url: Secret::new("http://x/") }],
        map: Some(ViolationMap::new(client.clone(), None, "my")),
        host: String::new(),
    };
    let courier = Courier::start(outlets, Post::new(service, Patience::default()));
    courier.tell(judged());
    courier.tell(Notice::Alert(alert()));
    a_while().await;
    assert_eq!(shown(&client).await, data(&[(FIXABLE, ONE)]));
    assert_eq!(got.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_map_does_not_wait_for_a_receiver_that_is_slow() {
    let client = api_server();
    let (got, service) = receiver(&[0; 99]);
    let outlets = Outlets {
        channels: vec![Channel::Webhook { url: Secret::new("http://x/") }],
        map: Some(ViolationMap::new(client.clone(), None, "my")),
        host: String::new(),
    };
    let courier = Courier::start(outlets, Post::new(service, Patience::default()));
    // Each of them keeps the receiver busy for most of a minute.
    (0..10).for_each(|_| courier.tell(Notice::Alert(alert())));
    courier.tell(judged());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(shown(&client).await, data(&[(FIXABLE, ONE)]));
    assert_eq!(got.lock().unwrap().len(), 1, "and the first alert is still on its way");
}
