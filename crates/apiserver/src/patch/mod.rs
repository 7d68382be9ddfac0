//! The three patch languages that are functions of an object and a patch. Server-side apply is not one of them: it
//! needs to know who owns what.
//!
//! Targets and patches come out of [`crate::decode`], so neither is nested deeper than [`crate::decode::MAX_DEPTH`],
//! and recursion over them is bounded. The results keep that promise.

mod json;
mod merge;
mod strategic;

pub use json::json_patch;
pub use merge::merge_patch;
pub use strategic::strategic_merge_patch;
pub(crate) use strategic::{as_go_prints, go_type};

use crate::refusal::Refusal;

/// A patch that can be read but not applied. The original tells nothing about the reason.
fn not_applicable() -> Refusal {
    let mut refusal = Refusal::new(422, "Invalid", "the server rejected our request due to an error in our request");
    refusal.details = Some(Box::default());
    refusal
}
