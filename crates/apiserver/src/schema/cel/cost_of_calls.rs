//! What a function call costs beyond its arguments, and how large its result can be.
//!
//! The unit is the original's: about one step of an interpreter. Walking a text costs a tenth per character, matching
//! a pattern a quarter per character of the pattern on top.

use super::decl::Kind;
use super::facts::{Facts, Range};

const WALK: f64 = 0.1;
const PATTERN: f64 = 0.25;

/// `size * factor`, rounded up.
pub(super) fn scaled(size: u64, factor: f64) -> u64 {
    // Float casts saturate, which is what an unknown size needs.
    if size == u64::MAX && factor >= 1.0 { u64::MAX } else { (size as f64 * factor).ceil() as u64 }
}

fn matching(text: u64, pattern: u64) -> u64 {
    scaled(text.saturating_add(1), WALK).saturating_mul(scaled(pattern, PATTERN))
}

/// What it costs to call something and to make a list.
const LIST: u64 = 11;

/// Cost and, where it is known, size of the result of a call. `number` tells arguments that are written out as numbers.
pub(super) fn of(
    name: &str,
    target: Option<&Facts>,
    args: &[Facts],
    number: impl Fn(usize) -> Option<u64>,
) -> (u64, Option<Range>) {
    let target_size = target.map(|facts| facts.size);
    let arg_size = |index: usize| args.get(index).map_or(Range::UNKNOWN, |facts| facts.size);
    let list_of =
        |size: u64, factor: f64| (scaled(size, factor).saturating_add(LIST), Some(Range { min: 0, max: size }));
    let list = target.filter(|facts| matches!(facts.ty.kind, Kind::List | Kind::Dyn)).map(|facts| facts.size.max);
    match (name, list) {
        ("lists.range", _) => return list_of(number(0).unwrap_or(u64::MAX), 1.0),
        ("reverse", Some(size)) => return list_of(size, 1.0),
        // Every item is compared with every other, and so many the original expects to come out.
        ("distinct", Some(size)) => return list_of(size.saturating_mul(size), 2.0),
        ("sort", Some(size)) => {
            let text = target.and_then(|facts| facts.ty.element()).is_some_and(|item| is_text(item.kind));
            return list_of(size.saturating_mul(size), if text { 2.0 + WALK } else { 2.0 });
        }
        ("slice", Some(size)) => {
            let (from, to) = (number(0).unwrap_or(0), number(1).unwrap_or(size));
            return list_of(to.saturating_sub(from), 1.0);
        }
        ("flatten", Some(size)) => {
            let depth = if args.is_empty() { 1 } else { number(0).unwrap_or(u64::MAX) };
            let (cost, _) = list_of(size, depth as f64);
            return (cost, Some(Range { min: 0, max: size }));
        }
        ("sets.contains" | "sets.intersects" | "sets.equivalent", _) => {
            let pairs = arg_size(0).max.saturating_mul(arg_size(1).max);
            let factor = if name == "sets.equivalent" { 2.0 } else { 1.0 };
            return (scaled(pairs, factor).saturating_add(1), None);
        }
        _ => {}
    }
    match name {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => match target {
            Some(facts) => (search_cost(facts), None),
            None => (1, None),
        },
        "url" => (scaled(arg_size(0).max, WALK), Some(arg_size(0))),
        "lowerAscii" | "upperAscii" | "substring" | "trim" => match target_size {
            Some(size) => (scaled(size.max, WALK), Some(size)),
            None => (1, None),
        },
        "replace" => match target_size {
            Some(size) => (scaled(size.max, 2.0 * WALK), Some(replaced(size, arg_size(0), arg_size(1)))),
            None => (1, None),
        },
        "split" => match target_size {
            Some(size) => (scaled(size.max, 2.0 * WALK), Some(Range { min: 0, max: size.max })),
            None => (1, None),
        },
        "join" => match target {
            Some(facts) => {
                let items = facts.ty.element().map_or(0, |element| element.max);
                let separator = args.first().map_or(0, |facts| facts.size.max);
                let max = facts
                    .size
                    .max
                    .saturating_mul(items)
                    .saturating_add(separator.saturating_mul(facts.size.max.saturating_sub(1)));
                (scaled(max, WALK), Some(Range { min: 0, max }))
            }
            None => (1, None),
        },
        "find" | "findAll" => match target_size {
            Some(size) => (matching(size.max, arg_size(0).max), Some(Range { min: 0, max: size.max })),
            None => (1, None),
        },
        "matches" => match target_size {
            Some(size) => (matching(size.max, arg_size(0).max), None),
            None => (matching(arg_size(0).max, arg_size(1).max), None),
        },
        "contains" => match target_size {
            Some(size) => (scaled(size.max, WALK).saturating_mul(scaled(arg_size(0).max, WALK)), None),
            None => (1, None),
        },
        "startsWith" | "endsWith" => (scaled(arg_size(0).max, WALK), None),
        "format" => (scaled(target_size.unwrap_or(Range::UNKNOWN).max, WALK), None),
        "bytes" => {
            let size = arg_size(0);
            (scaled(size.max, WALK), Some(Range { min: size.min, max: size.max.saturating_mul(4) }))
        }
        // What may be bytes may be as long as they are.
        "string" if args.first().is_some_and(|facts| matches!(facts.ty.kind, Kind::Bytes | Kind::Dyn)) => {
            let size = arg_size(0);
            (scaled(size.max, WALK), Some(Range { min: size.min / 4, max: size.max }))
        }
        "strings.quote" => {
            let size = arg_size(0);
            let max = size.max.saturating_mul(2).saturating_add(2);
            (scaled(size.max, WALK), Some(Range { min: size.min.saturating_add(2), max }))
        }
        "ip.isCanonical" => (scaled(arg_size(0).max, 2.0 * WALK), None),
        "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" | "isURL" => {
            (scaled(arg_size(0).max, WALK), None)
        }
        "ip" if target.is_none() => (scaled(arg_size(0).max, WALK), None),
        // Addresses have 16 bytes at most; an argument that is still text is read first.
        "containsIP" | "containsCIDR" => {
            let fixed = if name == "containsIP" { 4 } else { 7 };
            let text = args.first().filter(|facts| facts.ty.kind == Kind::String);
            (text.map_or(0, |facts| scaled(facts.size.max, WALK)).saturating_add(fixed), None)
        }
        "validate" => (scaled(scaled(arg_size(0).max, WALK), 128.0 * PATTERN), None),
        _ => (1, None),
    }
}

fn is_text(kind: Kind) -> bool {
    matches!(kind, Kind::String | Kind::Bytes)
}

/// One look at every item, and at every character of items that are text.
fn search_cost(facts: &Facts) -> u64 {
    match facts.ty.element() {
        Some(element) => {
            let each = if is_text(element.kind) { scaled(element.max, WALK).saturating_add(1) } else { 1 };
            facts.size.max.saturating_mul(each)
        }
        None => scaled(facts.size.max, WALK),
    }
}

fn replaced(text: Range, pattern: Range, by: Range) -> Range {
    let max = if pattern.min == 0 {
        // An empty pattern puts the replacement around every character.
        text.max.saturating_add(1).saturating_mul(by.max).saturating_add(text.max)
    } else if by.max <= pattern.min {
        text.max
    } else {
        text.max.div_ceil(pattern.min).saturating_mul(by.max)
    };
    Range { min: 0, max }
}
