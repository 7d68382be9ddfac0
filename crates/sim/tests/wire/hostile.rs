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
