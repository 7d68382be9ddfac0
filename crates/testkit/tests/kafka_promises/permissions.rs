//! What somebody may do who got in. Simulated brokers ask nobody, so these are promises of real ones alone.

use std::collections::BTreeMap;

use evenkeel_kafka::{
    ErrorCode,
    calls::topics::{Layout, NewTopic},
};
use evenkeel_testkit::real_kafka::Listener;

use crate::{
    doors::{every_way, knock, tls},
    world::{World, ids},
};

promises_of_real_brokers!(a_guest_enters_and_may_do_nothing);

async fn a_guest_enters_and_may_do_nothing(world: &World) {
    let guest = every_way(world, "guest", None).remove(0);
    let by_name = knock(world, Listener::SaslSsl, tls(world, None), Some(guest));
    let by_certificate = knock(world, Listener::Mtls, tls(world, Some(world.brokers.certificates().guest())), None);
    for client in [by_name, by_certificate] {
        let name = world.name("forbidden");
        let topic = NewTopic { name: name.clone(), layout: Layout::Manual(vec![ids(&[0])]), configs: BTreeMap::new() };
        let answers = client.create_topics(&[topic], false).await.whole().expect("an answer");
        assert_eq!(answers[&name].as_ref().unwrap_err().code, ErrorCode(29));
    }
}
