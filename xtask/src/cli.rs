//! What can be asked for on the command line, and who answers.

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::{bench, check, generate, image, kind, real, soak, tidy, workspace::Workspace};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Chores of the Evenkeel repository")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything CI runs, in CI's order; stops at the first failure.
    Check(check::Options),
    /// The rules of this repository that no compiler knows.
    Tidy,
    /// The suites against real parts instead of embedded ones.
    #[command(subcommand)]
    Real(Real),
    /// Numbers: ours beside the original, on this machine.
    #[command(subcommand)]
    Bench(Bench),
    /// The suites in which chance plays a part, with many seeds.
    Soak(soak::Options),
    /// Writes all generated files anew.
    Generate,
    /// The static program of the image, run in a folder where there is nothing else.
    Image(image::Options),
    /// The operator on a real kubelet: installs it in a cluster of kind, for those who have docker.
    Kind,
}

#[derive(Subcommand)]
enum Real {
    /// The API's promises against kube-apiserver, etcd and kube-controller-manager.
    Kube(TestArguments),
    /// What the client relies on, against brokers of Apache Kafka.
    Kafka(TestArguments),
    /// Makes or fetches the real parts and runs nothing: later runs find them.
    Parts,
}

#[derive(Subcommand)]
enum Bench {
    /// Our API server beside kube-apiserver and etcd.
    Kube(bench::KubeOptions),
    /// Our Kafka client: metadata of 200,000 partitions, a metrics topic, round trips beside kafka-python.
    Kafka(bench::KafkaOptions),
    /// Plans for clusters from 50,000 to 2.8 million replicas: time, memory, and how good they are.
    Balancer(bench::balancer::Options),
    /// The engine end to end: proposals, approvals, its state under load, memory, start, use of a throttle.
    Engine(bench::EngineOptions),
    /// The operator: memory and work at rest with many clusters, and how soon it acts.
    Operator(bench::OperatorOptions),
}

#[derive(Args)]
struct TestArguments {
    /// Handed to the test binaries: filters and flags of `cargo test -- …`.
    #[arg(last = true)]
    arguments: Vec<String>,
}

pub(crate) fn run() -> Result<()> {
    let chore = Cli::parse().chore;
    let workspace = Workspace::find()?;
    match chore {
        Chore::Check(options) => check::run(&workspace, &options),
        Chore::Tidy => tidy::run(&workspace),
        Chore::Real(Real::Kube(tests)) => real::kube(&workspace, &tests.arguments),
        Chore::Real(Real::Kafka(tests)) => real::kafka(&workspace, &tests.arguments),
        Chore::Real(Real::Parts) => real::parts(&workspace),
        Chore::Bench(Bench::Kube(options)) => bench::kube(&workspace, &options),
        Chore::Bench(Bench::Kafka(options)) => bench::kafka(&workspace, &options),
        Chore::Bench(Bench::Balancer(options)) => bench::balancer::run(&workspace, &options),
        Chore::Bench(Bench::Engine(options)) => bench::engine(&workspace, &options),
        Chore::Bench(Bench::Operator(options)) => bench::operator(&workspace, &options),
        Chore::Soak(options) => soak::run(&workspace, &options),
        Chore::Generate => generate::run(&workspace),
        Chore::Image(options) => image::run(&workspace, &options),
        Chore::Kind => kind::run(&workspace),
    }
}
