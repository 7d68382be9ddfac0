//! Reading request bodies, within bounds.

use std::time::Duration;

use axum::body::{Body as Incoming, HttpBody};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use super::negotiate::{BodyForm, PatchForm};
use super::protobuf;
use crate::api::{Body, Patch};
use crate::decode;
use crate::refusal::Refusal;

/// Largest body that is read, the original's limit.
const LIMIT: usize = 3 * 1024 * 1024;
/// How long a client may take to send one: a connection that trickles must not be held for ever.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long an early answer waits for the rest of its request.
const PATIENCE_FOR_THE_REST: Duration = Duration::from_secs(5);

/// Reads a body whole. What exceeds the limit is not read.
pub(super) async fn read(body: &mut Incoming) -> Result<Bytes, Refusal> {
    let collected = tokio::time::timeout(PATIENCE, Limited::new(body, LIMIT).collect()).await;
    match collected {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err(Refusal::too_large(format!("Request entity too large: limit is {LIMIT}")))
        }
        Ok(Err(error)) => Err(Refusal::bad_request(format!("unable to read the body: {error}"))),
        Err(_) => Err(Refusal::new(504, "Timeout", "request did not complete within requested timeout")),
    }
}

/// Reads on and forgets what it reads. Over HTTP/2, an answer that comes before the whole request has arrived may never
/// reach the client: some take the reset of the unfinished stream for an error. So early answers wait for the rest, but
/// not for long, and not for more than anybody may send.
pub(crate) async fn drain(body: &mut Incoming) {
    if body.is_end_stream() {
        return;
    }
    let rest = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > LIMIT {
                break;
            }
        }
    };
    // Whoever is slower than this has been told enough.
    let _ = tokio::time::timeout(PATIENCE_FOR_THE_REST, rest).await;
}

/// An object of that kind.
pub(super) fn object(form: BodyForm, bytes: &[u8], kind: &str) -> Result<Body, Refusal> {
    match form {
        BodyForm::Json => decode::object(bytes, kind),
        BodyForm::Yaml => decode::yaml_object(bytes, kind),
        BodyForm::Protobuf => protobuf::decode(bytes),
    }
}

/// The options of a delete.
pub(super) fn delete_options(form: BodyForm, bytes: &[u8]) -> Result<Value, Refusal> {
    let body = match form {
        BodyForm::Json => decode::delete_options(bytes),
        BodyForm::Yaml => decode::yaml_delete_options(bytes),
        BodyForm::Protobuf => protobuf::decode(bytes),
    };
    body.map(|body| body.value)
}

/// A patch, and the fields that stood twice in it.
pub(super) fn patch(form: PatchForm, bytes: &[u8]) -> Result<(Patch, Vec<String>), Refusal> {
    let (body, wrap): (Body, fn(Value) -> Patch) = match form {
        PatchForm::Json => (decode::patch(bytes)?, Patch::Json),
        PatchForm::Merge => (decode::patch(bytes)?, Patch::Merge),
        PatchForm::Strategic => (decode::json(bytes)?, Patch::Strategic),
        PatchForm::Apply => (decode::apply(bytes)?, Patch::Apply),
    };
    Ok((wrap(body.value), body.duplicates))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_at_the_limit_is_read_and_one_byte_more_is_refused() {
        let body = read(&mut Incoming::from(vec![b' '; LIMIT])).await.expect("just small enough");
        assert_eq!(body.len(), LIMIT);
        let refusal = read(&mut Incoming::from(vec![b' '; LIMIT + 1])).await.expect_err("too large");
        assert_eq!((refusal.code, refusal.message.as_str()), (413, "Request entity too large: limit is 3145728"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let never = futures::stream::pending::<Result<Bytes, std::io::Error>>();
        assert_eq!(read(&mut Incoming::from_stream(never)).await.expect_err("no end").code, 504);
    }
    #[tokio::test(start_paused = true)]
    async fn what_is_left_of_a_request_is_read_before_an_early_answer_but_not_for_ever() {
        let pieces = (0..4).map(|n| Ok::<_, std::io::Error>(vec![n; 10]));
        let mut body = Incoming::from_stream(futures::stream::iter(pieces));
        drain(&mut body).await;
        assert!(body.frame().await.is_none(), "nothing is left");
        let never = futures::stream::pending::<Result<Bytes, std::io::Error>>();
        drain(&mut Incoming::from_stream(never)).await;
        let flood = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![0; 1 << 20]));
        drain(&mut Incoming::from_stream(flood)).await;
    }
}
