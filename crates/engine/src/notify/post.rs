//! Posts letters: each try has its time, tries are few, and pauses between them grow.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use evenkeel_rest::client::{HttpService, http_service};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http_body_util::Full;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{sleep, timeout};
use tower::{BoxError, Service, ServiceExt};

use super::{Error, messages::Letter};

/// How patiently is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For one try.
    pub within: Duration,
    /// So many.
    pub tries: u32,
    /// Before the second try; before each further one twice as long.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { within: Duration::from_secs(10), tries: 4, pause: Duration::from_secs(2) }
    }
}

/// Posts over any service.
#[derive(Debug, Clone)]
pub struct Post<S> {
    service: S,
    patience: Patience,
}

impl Post<HttpService> {
    /// Over HTTP and HTTPS, trusting whom this machine trusts.
    pub fn over_the_net() -> Result<Post<HttpService>, Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(Error::NoAuthorities);
        }
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has the cipher suites of TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let patience = Patience::default();
        Ok(Post::new(http_service(tls, patience.within), patience))
    }
}

impl<S> Post<S> {
    /// Over this service.
    pub fn new(service: S, patience: Patience) -> Self {
        Post { service, patience }
    }

    /// Posts a letter; what is wrong only for the moment is tried again.
    pub async fn send<B>(&self, letter: &Letter) -> Result<(), Error>
    where
        S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone,
        S::Error: Into<BoxError>,
    {
        let mut pause = self.patience.pause;
        for _ in 1..self.patience.tries {
            match self.try_once(letter).await {
                Err(error) if error.may_pass() => sleep(pause).await,
                settled => return settled,
            }
            pause *= 2;
        }
        self.try_once(letter).await
    }

    async fn try_once<B>(&self, letter: &Letter) -> Result<(), Error>
    where
        S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone,
        S::Error: Into<BoxError>,
    {
        let within = self.patience.within;
        let answer = self.service.clone().oneshot(request(letter)?);
        let answer = timeout(within, answer).await.map_err(|_| Error::TimedOut(within))?;
        let status = answer.map_err(|source| Error::Reach { source: source.into() })?.status();
        if status.is_success() { Ok(()) } else { Err(Error::Refused(status)) }
    }
}

fn request(letter: &Letter) -> Result<http::Request<Full<Bytes>>, Error> {
    let made = |source| Error::Request { source };
    let mut builder = http::Request::post(letter.to.reveal())
        .header(ACCEPT, "application/json")
        .header(CONTENT_TYPE, "application/json; charset=utf-8");
    if let Some(key) = &letter.key {
        let mut value =
            HeaderValue::from_str(&format!("Key {}", key.reveal())).map_err(|source| made(source.into()))?;
        value.set_sensitive(true);
        builder = builder.header(AUTHORIZATION, value);
    }
    builder.body(Full::from(letter.body.clone())).map_err(made)
}
