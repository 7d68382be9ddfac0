//! Label and field selectors: parsing the query strings, and asking whether an object matches.

/// `labelSelector=`. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {}

/// `fieldSelector=`. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {}
