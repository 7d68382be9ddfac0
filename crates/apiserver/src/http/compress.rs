//! Large answers are compressed for who reads that, as the original does it: a quarter of a long list's bytes.

use std::io::Write as _;

use axum::body::{Body, HttpBody as _, to_bytes};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use http::{HeaderMap, HeaderValue, Response};

use super::answer::header;

/// Answers up to this size are sent as they are.
const LARGE: u64 = 128 * 1024;

/// Compresses an answer that is large, known as a whole, and wanted like that.
pub(super) async fn if_wanted(response: Response<Body>, asked: &HeaderMap) -> Response<Body> {
    let wanted = header(asked, ACCEPT_ENCODING).unwrap_or_default().split(',').any(|one| one.trim() == "gzip");
    if !wanted || response.body().size_hint().exact().is_none_or(|size| size <= LARGE) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let Ok(whole) = to_bytes(body, usize::MAX).await else { return Response::from_parts(head, Body::empty()) };
    // It takes a while, and others have their turn meanwhile.
    let small = tokio::task::spawn_blocking(move || compressed(&whole)).await.expect("compressing ends");
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(head, Body::from(small))
}

fn compressed(whole: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(whole.len() / 4), Compression::fast());
    encoder.write_all(whole).and_then(|()| encoder.finish()).expect("memory takes what is written").into()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    async fn answered(size: usize, accepts: &'static str) -> (HeaderMap, Bytes) {
        let mut asked = HeaderMap::new();
        asked.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepts));
        let (head, body) = if_wanted(Response::new(Body::from("x".repeat(size))), &asked).await.into_parts();
        (head.headers, to_bytes(body, usize::MAX).await.expect("a body"))
    }

    #[tokio::test]
    async fn large_answers_are_compressed_for_who_reads_that() {
        let (headers, body) = answered(LARGE as usize + 1, "br, gzip").await;
        assert_eq!(
            (&headers[CONTENT_ENCODING], &headers[VARY]),
            (&"gzip".parse().unwrap(), &"Accept-Encoding".parse().unwrap())
        );
        let mut whole = String::new();
        GzDecoder::new(&*body).read_to_string(&mut whole).expect("gzip");
        assert_eq!(whole, "x".repeat(LARGE as usize + 1));
        for (size, accepts) in
            [(LARGE as usize, "gzip"), (LARGE as usize + 1, "br"), (LARGE as usize + 1, "gzip;q=0.5")]
        {
            let (headers, body) = answered(size, accepts).await;
            assert_eq!((headers.len(), body.len()), (0, size), "{accepts}");
        }
    }
}
