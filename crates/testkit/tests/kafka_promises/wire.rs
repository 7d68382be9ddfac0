//! Single requests in a version of the test's choice, over a stream and without a client.

use std::{collections::BTreeMap, env, fs, path::Path, time::Duration};

use bytes::Bytes;
use evenkeel_kafka::{
    calls::log_dirs,
    connect::Stream,
    frame::FrameReader,
    guard::Limits,
    message,
    versions::{self, Versions},
};
use kafka_protocol::{messages::ApiKey, protocol::Request};
use tokio::{
    io::{AsyncWriteExt, ReadHalf, WriteHalf},
    time::{sleep, timeout},
};

use crate::world::{PATIENCE, World};

const CORRELATION: i32 = 7;
/// Between two tries of something that is not ready.
const PAUSE: Duration = Duration::from_millis(20);
/// Where answers of real brokers are kept.
const ANSWERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kafka/tests/real_answers");

/// A stream to one broker.
pub(crate) struct Wire {
    reading: FrameReader<ReadHalf<Stream>>,
    writing: WriteHalf<Stream>,
    /// Whether what it says is the word of a real broker.
    real: bool,
}

/// Calls that were made in each of their versions.
pub(crate) type Made = BTreeMap<i16, Versions>;

impl Wire {
    pub(crate) async fn open(world: &World, broker: i32) -> Self {
        Self::over(world.open(broker).await, world.brokers.are_real())
    }

    /// Over a stream that is open already, to a real broker or not.
    pub(crate) fn over(stream: Stream, real: bool) -> Self {
        let (reading, writing) = tokio::io::split(stream);
        Self { reading: FrameReader::new(reading), writing, real }
    }

    /// Makes a call once, in this version.
    pub(crate) async fn once<Q: Request>(&mut self, request: &Q, version: i16) -> Q::Response {
        let frame = self.exchange(request, version).await;
        if self.real {
            keep(ApiKey::try_from(Q::KEY).expect("a key of Kafka's"), version, &frame);
        }
        read::<Q>(&frame, version)
    }

    /// Makes a call in every version that the client speaks, until the broker has a settled answer to it.
    pub(crate) async fn each<Q: Request>(
        &mut self,
        made: &mut Made,
        request: impl Fn(i16) -> Q,
        settled: impl Fn(&Q::Response) -> bool,
    ) -> Vec<Q::Response> {
        let key = ApiKey::try_from(Q::KEY).expect("a key of Kafka's");
        let spoken = versions::of_client(key).expect("a call that the client makes");
        made.insert(Q::KEY, spoken.clone());
        let mut answers = Vec::new();
        for version in spoken {
            let tries = async {
                loop {
                    let frame = self.exchange(&request(version), version).await;
                    if version > Q::VERSIONS.max {
                        // Beyond the codec, of one call alone; the client reads it itself.
                        assert_eq!(key, ApiKey::DescribeLogDirs);
                        let read = log_dirs::decode_response(frame.clone(), version, Limits::KNOWN_PEER);
                        let (answer, cordoned) = read.expect("a readable answer");
                        let written = log_dirs::encode_response(&answer, &cordoned, version, CORRELATION);
                        assert_eq!(written.expect("an answer that can be written")[4..], frame[..], "{version}");
                        break (frame, None);
                    }
                    let answer = read::<Q>(&frame, version);
                    if settled(&answer) {
                        break (frame, Some(answer));
                    }
                    sleep(PAUSE).await;
                }
            };
            let (frame, answer) = timeout(PATIENCE, tries).await.expect("a settled answer in time");
            if self.real {
                keep(key, version, &frame);
            }
            answers.extend(answer);
        }
        answers
    }

    async fn exchange<Q: Request>(&mut self, request: &Q, version: i16) -> Bytes {
        let bytes = message::encode_request(request, version, CORRELATION, "wire").expect("a request");
        self.writing.write_all(&bytes).await.expect("a broker that listens");
        self.writing.flush().await.expect("a broker that listens");
        let answer = timeout(PATIENCE, self.reading.next()).await.expect("an answer in time");
        answer.expect("a frame").unwrap_or_else(|| panic!("no answer to {} {version}", std::any::type_name::<Q>()))
    }
}

/// The answer, if our codec would have written the same bytes for it.
fn read<Q: Request>(frame: &Bytes, version: i16) -> Q::Response {
    let answer = message::decode_response::<Q>(frame.clone(), version, Limits::KNOWN_PEER).expect("a readable answer");
    let written = message::encode_response(&answer, version, CORRELATION).expect("an answer that can be written");
    assert_eq!(written[4..], frame[..], "version {version} of {}", std::any::type_name::<Q>());
    answer
}

/// Writes an answer down, when that is asked for.
fn keep(key: ApiKey, version: i16, frame: &Bytes) {
    if env::var_os("EVENKEEL_BLESS").is_some() {
        fs::create_dir_all(ANSWERS).expect("a folder for answers");
        fs::write(Path::new(ANSWERS).join(format!("{key:?}.{version}.bin")), frame).expect("a file for an answer");
    }
}
