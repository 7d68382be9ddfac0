//! What operators take: which types go together, and what it costs to compare them.

use kube_cel::cel::common::ast::operators;

use super::cost_of_calls::scaled;
use super::decl::{Decl, Kind};
use super::facts::Facts;

pub(super) fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Int | Kind::Uint | Kind::Double)
}

pub(super) fn comparable(a: &Facts, b: &Facts) -> bool {
    let (a, b) = (a.ty.kind, b.ty.kind);
    let loose = |kind| matches!(kind, Kind::Dyn | Kind::Object | Kind::Map | Kind::Optional);
    match (a, b) {
        (Kind::Null, other) | (other, Kind::Null) => other == Kind::Dyn || nullable(other),
        (a, b) => a == b || loose(a) || loose(b),
    }
}

/// Only what has no value of its own to be empty may be null.
fn nullable(kind: Kind) -> bool {
    matches!(kind, Kind::Object | Kind::Timestamp | Kind::Duration | Kind::Opaque(_) | Kind::Optional | Kind::Null)
}

pub(super) fn ordered(a: &Facts, b: &Facts) -> bool {
    let (a, b) = (a.ty.kind, b.ty.kind);
    let orders = |kind| {
        is_number(kind)
            || matches!(kind, Kind::Dyn | Kind::Bool | Kind::String | Kind::Bytes | Kind::Timestamp | Kind::Duration)
    };
    orders(a) && orders(b) && (a == b || a == Kind::Dyn || b == Kind::Dyn || (is_number(a) && is_number(b)))
}

/// Comparing walks the smaller of the two.
pub(super) fn compare_cost(a: &Facts, b: &Facts) -> u64 {
    scaled(a.size.max.min(b.size.max), 0.1)
}

/// Types of Kubernetes' own are equal or not at one glance; only for `==`, as with the original.
pub(super) fn equality_cost(a: &Facts, b: &Facts) -> u64 {
    match (a.ty.kind, b.ty.kind) {
        (Kind::Opaque(name), Kind::Opaque(other)) if name == other && name != "kubernetes.URL" => 1,
        _ => compare_cost(a, b),
    }
}

/// The type of an arithmetic operation; `None` if there is none for these types.
pub(super) fn arithmetic(operator: &str, a: Kind, b: Kind) -> Option<Kind> {
    use Kind::{Duration, Dyn, Timestamp};
    match (operator, a, b) {
        (_, Dyn, _) | (_, _, Dyn) => Some(Dyn),
        (operators::ADD, Timestamp, Duration) | (operators::ADD, Duration, Timestamp) => Some(Timestamp),
        (operators::SUBSTRACT, Timestamp, Duration) => Some(Timestamp),
        (operators::SUBSTRACT, Timestamp, Timestamp) => Some(Duration),
        (operators::ADD | operators::SUBSTRACT, Duration, Duration) => Some(Duration),
        (operators::MODULO, Kind::Double, _) => None,
        (_, a, b) if a == b && is_number(a) => Some(a),
        _ => None,
    }
}

/// Whether values of two types may stand in one list.
pub(super) fn fits_beside(a: &Decl, b: &Decl) -> bool {
    if a.kind == Kind::Dyn || b.kind == Kind::Dyn {
        return true;
    }
    if a.kind == Kind::Null || b.kind == Kind::Null {
        return nullable(a.kind) && nullable(b.kind);
    }
    let inside = match (&a.element, &b.element) {
        (Some(a), Some(b)) => fits_beside(a, b),
        _ => true,
    };
    a.kind == b.kind && inside
}
