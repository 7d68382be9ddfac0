//! What operators take: which types go together, and what it costs to compare them.

use kube_cel::cel::common::ast::operators;

use super::cost_of_calls::scaled;
use super::decl::{Decl, Kind};
use super::facts::Facts;

pub(super) fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Int | Kind::Uint | Kind::Double)
}

/// Whether values of two types can be told to be equal.
pub(super) fn comparable(a: &Facts, b: &Facts) -> bool {
    match (a.ty.kind, b.ty.kind) {
        (Kind::Null, other) | (other, Kind::Null) => other == Kind::Dyn || nullable(other),
        _ => fits_beside(&a.ty, &b.ty),
    }
}

/// Whether something can be looked for in something: an item in a list, a key in a map.
pub(super) fn searchable(item: &Facts, holder: &Facts) -> bool {
    match (holder.ty.kind, holder.ty.element()) {
        (Kind::List, Some(element)) => fits_beside(&item.ty, &element),
        (Kind::Map, _) => is_one_or_any(item.ty.kind, holder.ty.key),
        (kind, _) => matches!(kind, Kind::List | Kind::Dyn),
    }
}

/// Whether something has entries that can be reached by that: a list's by number, a map's by key.
pub(super) fn indexable(holder: &Decl, by: Kind) -> bool {
    match (holder.kind, holder.element()) {
        (Kind::List, _) => matches!(by, Kind::Int | Kind::Dyn),
        (Kind::Map, _) => is_one_or_any(by, holder.key),
        (Kind::Optional, Some(inner)) => indexable(&inner, by),
        (kind, _) => matches!(kind, Kind::Dyn | Kind::Optional),
    }
}

/// Two kinds that are the same, as far as is known.
fn is_one_or_any(a: Kind, b: Kind) -> bool {
    a == b || a == Kind::Dyn || b == Kind::Dyn
}

/// Whether a function takes what is in the lists that it is given.
pub(super) fn takes_items(name: &str, target: Option<&Facts>, args: &[Facts]) -> bool {
    let inside = |list: &Facts| list.ty.element().filter(|_| list.ty.kind == Kind::List);
    let Some(list) = target.or(args.first()) else { return true };
    let Some(item) = inside(list).filter(|item| item.kind != Kind::Dyn) else { return true };
    match name {
        "sum" => is_number(item.kind) || item.kind == Kind::Duration,
        "flatten" => item.kind == Kind::List,
        "min" | "max" | "isSorted" | "sort" => orders(item.kind),
        "join" => item.kind == Kind::String,
        "indexOf" | "lastIndexOf" => args.first().is_none_or(|wanted| fits_beside(&wanted.ty, &item)),
        "sets.contains" | "sets.intersects" | "sets.equivalent" => {
            args.get(1).is_none_or(|other| fits_beside(&list.ty, &other.ty))
        }
        _ => true,
    }
}

/// Whether there is more and less of it.
fn orders(kind: Kind) -> bool {
    use Kind::{Bool, Bytes, Duration, Dyn, String, Timestamp};
    is_number(kind) || matches!(kind, Dyn | Bool | String | Bytes | Timestamp | Duration)
}

/// Only what has no value of its own to be empty may be null.
fn nullable(kind: Kind) -> bool {
    matches!(kind, Kind::Object | Kind::Timestamp | Kind::Duration | Kind::Opaque(_) | Kind::Optional | Kind::Null)
}

pub(super) fn ordered(a: &Facts, b: &Facts) -> bool {
    let (a, b) = (a.ty.kind, b.ty.kind);
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

/// Whether values of two types may stand in one list: they are of one type, as far as is known.
pub(super) fn fits_beside(a: &Decl, b: &Decl) -> bool {
    if a.kind == Kind::Dyn || b.kind == Kind::Dyn {
        return true;
    }
    if a.kind == Kind::Null || b.kind == Kind::Null {
        return nullable(a.kind) && nullable(b.kind);
    }
    let inside = match (a.element(), b.element()) {
        (Some(a), Some(b)) => fits_beside(&a, &b),
        _ => true,
    };
    let keys = a.kind != Kind::Map || is_one_or_any(a.key, b.key);
    a.kind == b.kind && keys && inside
}
