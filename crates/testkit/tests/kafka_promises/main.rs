//! What Kafka promises its clients, as one suite with two arms.
//!
//! Each promise is one function over a [`world::World`]. [`promises!`] makes two tests of it: one against simulated brokers
//! over pipes and under paused time, run by every `cargo test`, and one against brokers of Apache Kafka (feature
//! `real-kafka`). A promise that only one arm keeps is a bug in the simulation, or stands in `docs/compatibility.md`.
//! Whatever the client relies on belongs here: what calls answer, in which order things show, which errors come when.
//!
//! Promises are tolerant only where Kafka itself is not deterministic: what one broker was told, others know up to a
//! third of a second later, so most look until they see what was promised.

/// Makes two tests of each promise, one per arm; in the real one all share the brokers.
macro_rules! promises {
    ($($name:ident),+ $(,)?) => {
        mod sim_arm {
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() { super::$name(&$crate::world::simulated(stringify!($name), 4).await).await }
            )+
        }
        #[cfg(feature = "real-kafka")]
        mod real_arm {
            $( #[tokio::test] async fn $name() { super::$name(&$crate::world::real(stringify!($name)).await).await } )+
        }
    };
}

/// As [`promises!`], for promises that hurt brokers or change their settings: each has so many of its own.
macro_rules! promises_on_own_brokers {
    ($count:literal: $($name:ident),+ $(,)?) => {
        mod sim_arm {
            $(
                #[tokio::test(start_paused = true)]
                async fn $name() { super::$name(&$crate::world::simulated(stringify!($name), $count).await).await }
            )+
        }
        #[cfg(feature = "real-kafka")]
        mod real_arm {
            $(
                #[tokio::test]
                async fn $name() { super::$name(&$crate::world::real_own(stringify!($name), $count).await).await }
            )+
        }
    };
}

/// As [`promises!`], over sockets in both arms: TLS is spoken over nothing else.
macro_rules! promises_at_doors {
    ($($name:ident),+ $(,)?) => {
        mod sim_arm {
            $(
                #[tokio::test]
                async fn $name() { super::$name(&$crate::world::simulated_with_doors(stringify!($name)).await).await }
            )+
        }
        #[cfg(feature = "real-kafka")]
        mod real_arm {
            $( #[tokio::test] async fn $name() { super::$name(&$crate::world::real(stringify!($name)).await).await } )+
        }
    };
}

/// For what the simulation leaves out on purpose.
#[cfg(feature = "real-kafka")]
macro_rules! promises_of_real_brokers {
    ($($name:ident),+ $(,)?) => {
        mod real_arm {
            $( #[tokio::test] async fn $name() { super::$name(&$crate::world::real(stringify!($name)).await).await } )+
        }
    };
}

mod brokers;
mod simulated;
mod wire;
mod world;

mod acknowledgements;
mod bad_input;
mod cluster_wide;
mod compaction;
mod configs;
mod directories;
mod doors;
mod elections;
mod failures;
mod large;
mod log_dirs;
mod membership;
#[cfg(feature = "real-kafka")]
mod permissions;
mod quorum;
mod reassignments;
mod records;
mod topics;
mod transactions;
mod versions;
mod whole_topics;
