//! What Kafka promises its clients, as one suite.
//!
//! Each promise is one function over a [`world::World`]; [`promises!`] makes a test of it against brokers of Apache Kafka
//! (feature `real-kafka`). Whatever the client relies on belongs here: what calls answer, in which order things show,
//! which errors come when.
//!
//! Promises are tolerant only where Kafka itself is not deterministic: what one broker was told, others know up to a
//! third of a second later, so most look until they see what was promised.
#![cfg(feature = "real-kafka")]

/// Makes a test of each promise.
macro_rules! promises {
    ($($name:ident),+ $(,)?) => {
        mod real_arm {
            $( #[tokio::test] async fn $name() { super::$name(&$crate::world::real(stringify!($name)).await).await } )+
        }
    };
}

mod wire;
mod world;

mod versions;
