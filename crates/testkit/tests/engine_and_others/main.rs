//! The engine beside parts that share no code with it: real brokers whose data it moves, and LinkedIn's own command line
//! client, which must not notice that it speaks with another server. Both need what `cargo xtask real kafka` installs.
#![cfg(feature = "real-kafka")]

mod cccli;
mod life;
mod story;

mod real_arm {
    #[tokio::test(flavor = "multi_thread")]
    async fn data_on_real_brokers_is_moved_as_approved_though_the_engine_dies_half_way() {
        crate::story::data_is_moved_as_approved().await;
    }
}

mod sim_with_clients_arm {
    #[tokio::test(flavor = "multi_thread")]
    async fn cccli_works_with_every_command_that_is_built() {
        crate::cccli::every_command_works().await;
    }
}
