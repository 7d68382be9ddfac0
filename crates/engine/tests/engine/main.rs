//! The engine as a whole, and its parts on simulated brokers, under paused time: one program, so that its libraries are
//! linked once.

mod configuration_page;
mod crash;
mod crash_whole;
mod disks;
mod door;
mod draining;
mod execution;
mod faults;
mod fencing;
mod lives;
mod monitoring;
mod old_records;
mod others;
mod port;
mod scenarios;
mod sensors;
mod shapes;
mod stage;
mod states;
mod stuck;
mod throttled;
mod unread;
mod whole;
