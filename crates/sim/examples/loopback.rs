//! A simulated cluster on loopback ports, to point any client at.
//!
//! `cargo run -p evenkeel-sim --example loopback -- 4` prints the bootstrap line of four brokers,
//! then reads commands: `crash N`, `stop N`, `start N`, `add N`. It ends with its standard input.
//! With a second argument `NAME:PASSWORD` clients have to log in (SASL_PLAINTEXT).
//! `RUST_LOG=evenkeel_sim=debug` tells why a client was cut off.
#![expect(clippy::print_stdout, reason = "it talks to a person")]

use std::error::Error;

use evenkeel_sim::broker::login::Users;
use evenkeel_sim::cluster::{BrokerSpec, Fault};
use evenkeel_sim::serve::{Listener, World};
use evenkeel_sim::{BrokerId, Cluster, Options};
use tokio::io::{AsyncBufReadExt, BufReader};

fn broker(id: i32) -> BrokerSpec {
    BrokerSpec::new(id).in_rack(["a", "b", "c"][id as usize % 3]).with_dirs(["/data/d0", "/data/d1"])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let filter = tracing_subscriber::EnvFilter::from_default_env();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let count: i32 = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let options = Options { session_timeout: 2_000, wall_start: i64::try_from(now.as_millis())?, ..Options::default() };
    let world = World::new(Cluster::new(options, (0..count).map(broker)));
    let mut listener = Listener::plain(world.clone());
    let user = std::env::args().nth(2);
    if let Some((name, password)) = user.as_deref().and_then(|user| user.split_once(':')) {
        listener = listener.with_users(Users::default().with(name, password));
    }
    for id in 0..count {
        listener.open_tcp(BrokerId(id), 0).await?;
    }
    println!("{}", listener.bootstrap());
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let mut words = line.split_whitespace();
        let (Some(verb), Some(id)) = (words.next(), words.next().and_then(|id| id.parse().ok())) else {
            println!("what, and which broker?");
            continue;
        };
        let id = BrokerId(id);
        match verb {
            "crash" => world.with(|cluster| cluster.suffer(&Fault::Crash(id))),
            "stop" => world.with(|cluster| cluster.suffer(&Fault::Stop(id))),
            "start" => world.with(|cluster| cluster.suffer(&Fault::Return(id))),
            "add" => {
                listener.open_tcp(id, 0).await?;
                world.with(|cluster| cluster.add_broker(broker(id.0)));
            }
            _ => {
                println!("unknown: {verb}");
                continue;
            }
        }
        println!("done");
    }
    Ok(())
}
