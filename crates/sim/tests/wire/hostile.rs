//! Hostile bytes through the whole way in: stream, frames, login, guard, codec. The connection ends or goes on, and nobody
//! else notices.

use evenkeel_sim::broker::login::Users;
use tokio::io::AsyncReadExt;

use super::*;

/// What broker 0 answers to these bytes before it hangs up; and then it answers somebody else as ever.
fn throw(bytes: &[u8], users: Option<Users>) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let world = World::new(cluster());
        let listener = Listener::plain(world.clone());
        (0..3).for_each(|id| listener.announce(BrokerId(id), "sim", 9_092));
        let listener = users.into_iter().fold(listener, Listener::with_users);
        let (mut ours, theirs) = tokio::io::duplex(1 << 16);
        let served = tokio::spawn(async move { listener.serve(B0, theirs).await });
        // It may have hung up before all was said.
        let _ = ours.write_all(bytes).await;
        let _ = ours.shutdown().await;
        let mut answers = Vec::new();
        ours.read_to_end(&mut answers).await.expect("an end");
        served.await.expect("no panic");
        let metadata = Peer::new(&world).call(&MetadataRequest::default(), 12).await.expect("an answer");
        assert_eq!(metadata.brokers.len(), 3);
        answers
    })
}

/// One good request of each kind that needs nothing before it.
fn conversation() -> Vec<u8> {
    let mechanism = SaslHandshakeRequest::default().with_mechanism(word("SCRAM-SHA-256"));
    let first = SaslAuthenticateRequest::default().with_auth_bytes(Bytes::from_static(b"n,,n=admin,r=abc"));
    let frames = [
        encode_request(&ApiVersionsRequest::default(), 3, 1, "test"),
        encode_request(&mechanism, 1, 2, "test"),
        encode_request(&first, 2, 3, "test"),
        encode_request(&MetadataRequest::default(), 12, 4, "test"),
        encode_request(&produce(-1), 11, 5, "test"),
        encode_request(&fetch(0, 10), 12, 6, "test"),
        encode_request(&DescribeLogDirsRequest::default().with_topics(None), 5, 7, "test"),
    ];
    frames.into_iter().flat_map(|frame| frame.expect("written").to_vec()).collect()
}

fn users() -> Users {
    Users::default().with("admin", "secret")
}

#[test]
fn a_good_conversation_is_answered() {
    assert!(throw(&conversation(), None).len() > 500);
    let before_the_door = throw(&conversation(), Some(users()));
    assert!((100..throw(&conversation(), None).len()).contains(&before_the_door.len()));
}

#[test]
fn more_partitions_than_a_controller_makes_at_once_are_refused_before_they_are_placed() {
    let mut cluster = cluster();
    let topic = |nth: usize, count| {
        let name = TopicName(StrBytes::from_string(format!("new-{nth}")));
        CreatableTopic::default().with_name(name).with_num_partitions(count).with_replication_factor(1)
    };
    let mut make = |topics: Vec<CreatableTopic>| {
        let request = CreateTopicsRequest::default().with_topics(topics).with_validate_only(true);
        let answer = ask(&mut cluster, &request, 7).expect("an answer");
        answer.topics.iter().map(|it| it.error_code).collect::<Vec<_>>()
    };
    assert_eq!(make(vec![topic(0, i32::MAX)]), [44]);
    assert_eq!(make(vec![topic(0, 6_000), topic(1, 6_000)]), [44, 44], "of all topics together");
    assert_eq!(make(vec![topic(0, 5_000), topic(1, 5_000)]), [0, 0]);
    assert_eq!(make(vec![topic(0, 1), topic(1, 1), topic(0, 1)]), [42, 0], "named twice");
    let grown = |cluster: &mut Cluster, count| {
        let topic = create_partitions_request::CreatePartitionsTopic::default().with_name(name("t")).with_count(count);
        let request = CreatePartitionsRequest::default().with_topics(vec![topic.with_assignments(None)]);
        ask(cluster, &request.with_validate_only(true), 3).expect("an answer").results[0].error_code
    };
    assert_eq!([grown(&mut cluster, i32::MAX), grown(&mut cluster, 10_002), grown(&mut cluster, 10_001)], [44, 44, 0]);
}

#[test]
fn a_partition_assigned_twice_is_refused() {
    let assignment = create_topics_request::CreatableReplicaAssignment::default().with_broker_ids(vec![0.into()]);
    let topic = CreatableTopic::default().with_name(name("new")).with_num_partitions(-1).with_replication_factor(-1);
    let topic = topic.with_assignments(vec![assignment.clone(), assignment]);
    let answer = ask(&mut cluster(), &CreateTopicsRequest::default().with_topics(vec![topic]), 7).expect("an answer");
    assert_eq!(answer.topics[0].error_code, 39);
}

#[test]
fn what_is_named_a_thousand_times_is_answered_once() {
    let mut cluster = cluster();
    let resource = describe_configs_request::DescribeConfigsResource::default().with_resource_type(2);
    let resource = resource.with_resource_name(word("t")).with_configuration_keys(None);
    let configs = DescribeConfigsRequest::default().with_resources(vec![resource; 1_000]);
    assert_eq!(ask(&mut cluster, &configs, 4).expect("an answer").results.len(), 1);
    let topic = metadata_request::MetadataRequestTopic::default().with_name(Some(name("t")));
    let metadata = MetadataRequest::default().with_topics(Some(vec![topic; 1_000]));
    assert_eq!(ask(&mut cluster, &metadata, 12).expect("an answer").topics.len(), 1);
    let partition = describe_quorum_request::PartitionData::default();
    let topic = describe_quorum_request::TopicData::default().with_topic_name(name("__cluster_metadata"));
    let quorum = DescribeQuorumRequest::default().with_topics(vec![topic.with_partitions(vec![partition; 1_000]); 9]);
    let answer = ask(&mut cluster, &quorum, 2).expect("an answer");
    assert_eq!(answer.topics.iter().map(|it| it.partitions.len()).collect::<Vec<_>>(), [1]);
}

#[test]
fn a_request_of_a_million_elements_ends_the_connection() {
    let topic = metadata_request::MetadataRequestTopic::default().with_name(Some(name("t")));
    let metadata = MetadataRequest::default().with_topics(Some(vec![topic; 1_000_000]));
    assert!(ask(&mut cluster(), &metadata, 12).is_none());
}

#[test]
fn who_fails_to_log_in_hears_it_and_is_cut_off() {
    let frames = |mechanism: &'static str| {
        let hands = SaslHandshakeRequest::default().with_mechanism(word(mechanism));
        let wrong = SaslAuthenticateRequest::default().with_auth_bytes(Bytes::from_static(b"\0admin\0wrong"));
        let right = SaslAuthenticateRequest::default().with_auth_bytes(Bytes::from_static(b"\0admin\0secret"));
        let frames = [
            encode_request(&hands, 1, 1, "test"),
            encode_request(&wrong, 2, 2, "test"),
            encode_request(&hands, 1, 3, "test"),
            encode_request(&right, 2, 4, "test"),
        ];
        frames.map(|frame| frame.expect("written").to_vec())
    };
    let answers = |frames: &[Vec<u8>]| {
        let mut said = &throw(&frames.concat(), Some(users()))[..];
        let mut answers = 0;
        while let Some((length, rest)) = said.split_first_chunk() {
            said = &rest[usize::try_from(i32::from_be_bytes(*length)).expect("a length")..];
            answers += 1;
        }
        answers
    };
    assert_eq!(answers(&frames("PLAIN")), 2, "hands are shaken, and the password is wrong");
    assert_eq!(answers(&frames("PLAIN")[2..]), 2);
    assert_eq!(answers(&frames("NONE")), 1, "there is no such mechanism");
}

#[tokio::test(start_paused = true)]
async fn a_stranger_who_says_nothing_is_not_kept_for_ever() {
    let listener = Listener::plain(World::new(cluster())).with_users(users());
    let (_ours, theirs) = tokio::io::duplex(1 << 16);
    let start = Instant::now();
    listener.serve(B0, theirs).await;
    assert_eq!(start.elapsed().as_secs(), 600);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn noise_disturbs_nobody(noise in prop::collection::vec(any::<u8>(), 0..400), with_login: bool) {
        throw(&noise, with_login.then(users));
    }

    #[test]
    fn a_frame_of_noise_disturbs_nobody(noise in prop::collection::vec(any::<u8>(), 0..400), with_login: bool) {
        let length = i32::try_from(noise.len()).expect("short").to_be_bytes();
        throw(&[&length[..], &noise].concat(), with_login.then(users));
    }

    #[test]
    fn a_wounded_conversation_disturbs_nobody(
        wounds in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
        with_login: bool,
    ) {
        let mut said = conversation();
        for (place, byte) in &wounds {
            let place = place.index(said.len());
            said[place] = *byte;
        }
        said.truncate(cut.map_or(said.len(), |cut| cut.index(said.len())));
        throw(&said, with_login.then(users));
    }
}
