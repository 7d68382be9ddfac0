//! Label and field selectors: parsing the query strings, and asking whether an object matches.

mod fields;
mod labels;

pub use fields::{FieldOperator, FieldRequirement, FieldSelector};
pub use labels::{LabelOperator, LabelRequirement, LabelSelector};
