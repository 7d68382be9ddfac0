//! What a Kubernetes API promises its clients, as one suite with two arms.
//!
//! Each promise is one function over a [`world::World`]. [`promises!`] makes two tests of it: one against the embedded
//! server, run by every `cargo test`, and one against the real kube-apiserver with etcd and its own controllers
//! (feature `real-kube`). A promise that only one arm keeps is a bug in the embedded server, or stands in
//! `docs/compatibility.md`.
//!
//! Promises assert what clients decide by: codes, reasons, causes, and the texts that people and tools match on. They
//! are tolerant only where Kubernetes itself is not deterministic.

/// Makes two tests of each promise, one per arm.
macro_rules! promises {
    ($($name:ident),+ $(,)?) => {
        mod embedded_arm {
            $( #[tokio::test] async fn $name() { super::$name($crate::world::embedded().await).await } )+
        }
        #[cfg(feature = "real-kube")]
        mod real_arm {
            $( #[tokio::test] async fn $name() { super::$name($crate::world::real().await).await } )+
        }
    };
}

/// As [`promises!`], with a third arm: the real API server with our controllers in place of its own.
macro_rules! promises_of_controllers {
    ($($name:ident),+ $(,)?) => {
        promises!($($name),+);
        #[cfg(feature = "real-kube")]
        mod node_arm {
            $( #[tokio::test] async fn $name() { super::$name($crate::world::real_with_node().await).await } )+
        }
    };
}

mod answer;
mod watching;
mod widgets;
mod world;

mod apply;
mod apply_lists;
mod bad_input;
mod builtin_status;
mod builtins;
mod crud;
mod definitions;
mod deletion;
mod discovery;
mod expressions;
mod field_validation;
mod forms;
mod garbage;
mod listing;
mod locking;
mod namespaces;
mod ownership;
mod patches;
mod patterns;
mod pods;
mod resource_rules;
mod resources;
mod rules;
mod schemas;
mod selectors;
mod strategic;
mod subresources;
mod updates;
mod versions;
mod watch_paths;
mod watches;
