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

/// Cost and, where it is known, size of the result of a call.
pub(super) fn of(name: &str, target: Option<&Facts>, args: &[Facts]) -> (u64, Option<Range>) {
    let target_size = target.map(|facts| facts.size);
    let arg_size = |index: usize| args.get(index).map_or(Range::UNKNOWN, |facts| facts.size);
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
                let items = facts.ty.element.as_ref().map_or(0, |element| element.max);
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
        "string" if args.first().is_some_and(|facts| facts.ty.kind == Kind::Bytes) => {
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

/// One look at every item, and at every character of items that are text.
fn search_cost(facts: &Facts) -> u64 {
    match &facts.ty.element {
        Some(element) => {
            let text = matches!(element.kind, Kind::String | Kind::Bytes);
            let each = if text { scaled(element.max, WALK).saturating_add(1) } else { 1 };
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
