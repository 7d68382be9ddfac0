//! Small clusters, drawn as text, and what is asked, planned, said and ordered on them.

mod asking;
mod bodies;
mod carried_out;
mod fitting;
mod inspected;
mod operations;
pub(crate) mod scene;
