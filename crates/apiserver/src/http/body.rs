//! Reading request bodies, within bounds.

use std::time::Duration;

use axum::body::Body as Incoming;
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

/// Reads a body whole. What exceeds the limit is not read.
pub(super) async fn read(body: Incoming) -> Result<Bytes, Refusal> {
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

/// An object of that kind.
pub(super) fn object(form: BodyForm, bytes: &[u8], kind: &str) -> Result<Body, Refusal> {
    match form {
        BodyForm::Json => decode::object(bytes, kind),
        BodyForm::Yaml => decode::yaml_object(bytes, kind),
        BodyForm::Protobuf => protobuf::decode(bytes).map(|value| Body { value, duplicates: Vec::new() }),
    }
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
        let body = read(Incoming::from(vec![b' '; LIMIT])).await.expect("just small enough");
        assert_eq!(body.len(), LIMIT);
        let refusal = read(Incoming::from(vec![b' '; LIMIT + 1])).await.expect_err("too large");
        assert_eq!((refusal.code, refusal.message.as_str()), (413, "Request entity too large: limit is 3145728"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_ends_is_given_up() {
        let never = futures::stream::pending::<Result<Bytes, std::io::Error>>();
        assert_eq!(read(Incoming::from_stream(never)).await.expect_err("no end").code, 504);
    }
}
