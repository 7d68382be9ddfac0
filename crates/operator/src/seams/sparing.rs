//! The Kubernetes API, asked by many but not by all at once.
//!
//! A hundred clusters that change at once ask for some thousand lists, and write as much. Over HTTP/1 each request that is under
//! way has a connection of its own, with the buffers that its answer needed, and these stay: so few are under way at a time.

use std::{sync::Arc, time::Duration};

use http::{Method, Request};
use kube::{Client, client::Body};
use tokio::{sync::Semaphore, time::timeout};
use tower::service_fn;

/// So many questions wait for their answer to begin at a time, and so many writes. Each have their own turns: a write may wait
/// for somebody's webhook.
const AT_ONCE: usize = 16;
/// Whoever is not answered for so long will not be: its turn is another's. The API server itself gives up after a minute.
const LONGEST: Duration = Duration::from_secs(60);

/// The same API, asked by few at a time.
pub(super) fn sparing(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let [questions, writes] = [(), ()].map(|()| Arc::new(Semaphore::new(AT_ONCE)));
    let service = service_fn(move |request: Request<Body>| {
        let turns = if request.method() == Method::GET { &questions } else { &writes };
        let (client, turns) = (client.clone(), Arc::clone(turns));
        async move {
            if waits_for_nobody(&request) {
                return client.send(request).await;
            }
            // Nobody closes it, and who has none would only ask all the same.
            let _turn = turns.acquire().await.ok();
            let late = |_| kube::Error::Service(format!("no answer within {LONGEST:?}").into());
            timeout(LONGEST, client.send(request)).await.map_err(late)?
        }
    });
    Client::new(service, namespace)
}

/// Watches go on for ever, and the lists that they begin with, which alone come in pages, are left alone while a controller
/// backs off. A Lease that is renewed too late is lost.
fn waits_for_nobody(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    let watches = query.split('&').any(|part| part == "watch=true" || part.starts_with("limit="));
    watches || request.uri().path().starts_with("/apis/coordination.k8s.io/")
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use futures::future::join_all;
    use http::Response;

    use super::*;

    /// An API that takes a second for each answer, and the most that it was asked at once.
    fn slow() -> (Client, Arc<AtomicUsize>) {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let told = Arc::clone(&most);
        let service = service_fn(move |_: Request<Body>| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_secs(1)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        });
        (Client::new(service, "default"), told)
    }

    async fn ask(client: &Client, uri: &str) {
        let request = Request::get(uri).body(Body::empty()).unwrap();
        client.send(request).await.unwrap();
    }

    async fn write(client: &Client, uri: &str) {
        let request = Request::post(uri).body(Body::empty()).unwrap();
        client.send(request).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn few_ask_at_a_time_and_all_are_answered() {
        let (client, most) = slow();
        let client = sparing(client);
        join_all((0..100).map(|_| ask(&client, "/api/v1/pods"))).await;
        assert_eq!(most.load(Ordering::SeqCst), AT_ONCE);
    }

    #[tokio::test(start_paused = true)]
    async fn few_write_at_a_time_whoever_asks_meanwhile() {
        let (client, most) = slow();
        let client = sparing(client);
        let writes = join_all((0..100).map(|_| write(&client, "/api/v1/pods")));
        let lists = join_all((0..100).map(|_| ask(&client, "/api/v1/pods")));
        tokio::join!(writes, lists);
        assert_eq!(most.load(Ordering::SeqCst), 2 * AT_ONCE);
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_answer_keeps_nobody_waiting_for_ever() {
        let silent = service_fn(async |request: Request<Body>| {
            if request.uri().path() == "/silent" {
                std::future::pending::<()>().await;
            }
            Ok::<_, Infallible>(Response::new(Body::empty()))
        });
        let client = sparing(Client::new(silent, "default"));
        let unanswered = join_all(
            (0..AT_ONCE)
                .map(|_| async { client.send(Request::get("/silent").body(Body::empty()).unwrap()).await.is_err() }),
        );
        let (unanswered, ()) = tokio::join!(unanswered, ask(&client, "/api/v1/pods"));
        assert_eq!(unanswered, [true; AT_ONCE]);
    }

    #[tokio::test(start_paused = true)]
    async fn watches_with_their_lists_and_leases_wait_for_nobody() {
        let (client, most) = slow();
        let client = sparing(client);
        let pages = join_all((0..100).map(|_| ask(&client, "/api/v1/pods?&limit=500")));
        let watch = join_all((0..100).map(|_| ask(&client, "/api/v1/pods?allowWatchBookmarks=true&watch=true")));
        let name = "/apis/coordination.k8s.io/v1/namespaces/a/leases/b";
        let lease = ask(&client, name);
        let renewal = join_all((0..100).map(|_| write(&client, name)));
        let lists = join_all((0..100).map(|_| ask(&client, "/api/v1/pods?labelSelector=watch")));
        tokio::join!(pages, watch, lease, renewal, lists);
        assert_eq!(most.load(Ordering::SeqCst), 300 + 1 + AT_ONCE);
    }
}
