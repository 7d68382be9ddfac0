//! Pods of a Kafka cluster launched as a kubelet launches them: simulated brokers and the engine, over pipes under
//! paused time, and over sockets.

mod brokers;
mod engine;
mod yard;
