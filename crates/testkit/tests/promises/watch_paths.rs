//! Paths that are watches by themselves, as clients asked for them before there was a parameter for it.

use http::Method;
use serde_json::json;

use crate::answer::version;
use crate::widgets::{anything, definition};
use crate::world::World;

promises!(
    a_path_may_be_a_watch_of_a_namespace_or_of_all,
    a_path_may_be_a_watch_of_one_object,
    a_path_that_is_a_watch_takes_no_other_verb,
);

async fn a_path_may_be_a_watch_of_a_namespace_or_of_all(world: World) {
    let since = version(&world.get(&world.maps()).await.ok());
    let query = format!("resourceVersion={since}&labelSelector=of={}", world.namespace);
    let mut watches = Vec::new();
    for path in
        [format!("/api/v1/watch/namespaces/{}/configmaps", world.namespace), "/api/v1/watch/configmaps".to_owned()]
    {
        watches.push(world.watch(&path, &query).await);
    }
    world.map("a", json!({"of": world.namespace})).await;
    for watch in &mut watches {
        assert_eq!(watch.step().await, ("ADDED".into(), "a".into()));
    }
    let widgets = world.install(definition(anything())).await;
    let since = version(&world.get(&widgets.path()).await.ok());
    let path = widgets.path().replacen("/v1/", "/v1/watch/", 1);
    let mut watch = world.watch(&path, &format!("resourceVersion={since}")).await;
    world.post(&widgets.path(), widgets.widget("w", json!({}))).await.code(201);
    assert_eq!(watch.step().await, ("ADDED".into(), "w".into()));
}

async fn a_path_may_be_a_watch_of_one_object(world: World) {
    let since = version(&world.get(&world.maps()).await.ok());
    let path = format!("/api/v1/watch/namespaces/{}/configmaps/b", world.namespace);
    let mut watch = world.watch(&path, &format!("resourceVersion={since}")).await;
    world.map("a", json!({})).await;
    world.map("b", json!({})).await;
    assert_eq!(watch.step().await, ("ADDED".into(), "b".into()));
    let answer = world.get(&format!("{path}?fieldSelector=metadata.name%3Da")).await.refused(400, "BadRequest");
    answer.says("fieldSelector metadata.name doesn't match requested name");
    let mut watch = world.watch(&format!("/api/v1/watch/namespaces/{}", world.namespace), "").await;
    assert_eq!(watch.step().await, ("ADDED".into(), world.namespace.clone()));
}

async fn a_path_that_is_a_watch_takes_no_other_verb(world: World) {
    let path = format!("/api/v1/watch/namespaces/{}/configmaps", world.namespace);
    for method in [Method::POST, Method::DELETE, Method::PUT] {
        world
            .send(method, &path, &[("content-type", "application/json")], Vec::new())
            .await
            .refused(405, "MethodNotAllowed");
    }
}
