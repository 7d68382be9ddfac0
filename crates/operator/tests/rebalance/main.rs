//! KafkaRebalances from beginning to end: the embedded API server, the real controller, the real engine on simulated
//! brokers, under paused time.

#![allow(unreachable_pub, reason = "a test binary has no outside")]

mod admitted;
mod authority;
mod cluster;
mod commands;
mod crashes;
mod deletion;
mod foreign;
mod misbehaviour;
mod moves;
#[path = "../clusters/rights.rs"]
mod rights;
mod seams;
mod slow;
mod stage;
mod stories;
mod suite;
mod trouble;

mod arm {
    use crate::stage::Stage;

    pub async fn embedded(_: &str) -> Stage {
        Stage::embedded().await
    }
}

/// What is told here on an embedded server, in paused time, is told on a real one by the suite
/// `rebalances_on_a_real_server` of `testkit`.
mod embedded_arm {
    crate::suite::suite!([#[tokio::test(start_paused = true)]] embedded);
}

mod embedded_arm_on_sockets {
    crate::suite::suite!(@sockets [#[tokio::test]] embedded);
}

/// And this only here.
mod in_paused_time {
    crate::suite::suite!(@long [#[tokio::test(start_paused = true)]] embedded);
}

mod on_a_server_of_its_own {
    crate::suite::suite!(@alone [#[tokio::test(start_paused = true)]] embedded);
}
