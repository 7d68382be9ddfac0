//! What Kafka promises its clients, as one suite.
//!
//! Each promise is one function over a [`world::World`]; [`promises!`] makes a test of it against brokers of Apache Kafka
//! (feature `real-kafka`). Whatever the client relies on belongs here: what calls answer, in which order things show,
//! which errors come when.
//!
//! Promises are tolerant only where Kafka itself is not deterministic: what one broker was told, others know up to a
//! third of a second later, so most look until they see what was promised.
#![cfg(feature = "real-kafka")]

/// Makes a test of each promise, on brokers that all promises share.
macro_rules! promises {
    ($($name:ident),+ $(,)?) => {
        mod real_arm {
            $( #[tokio::test] async fn $name() { super::$name(&$crate::world::real(stringify!($name)).await).await } )+
        }
    };
}

/// The same for promises that hurt brokers or change their settings: each has so many of its own.
macro_rules! promises_on_own_brokers {
    ($count:literal: $($name:ident),+ $(,)?) => {
        mod real_arm {
            $(
                #[tokio::test]
                async fn $name() { super::$name(&$crate::world::real_own(stringify!($name), $count).await).await }
            )+
        }
    };
}

mod wire;
mod world;

mod bad_input;
mod configs;
mod directories;
mod doors;
mod elections;
mod log_dirs;
mod membership;
mod reassignments;
mod records;
mod topics;
mod transactions;
mod versions;
