//! The functions that rules may call, and what they yield: those of the original, and no others that the interpreter
//! happens to know.

use std::sync::Arc;

use super::decl::{Decl, Kind};

/// Names that stand for types, as in `type(x) == int`.
pub(super) const TYPE_NAMES: &[&str] =
    &["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "uint"];

/// Formats of text that have a function of their own, `format.<name>()`.
pub(super) const NAMED_FORMATS: &[&str] = &[
    "byte",
    "date",
    "datetime",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "labelValue",
    "qualifiedName",
    "uri",
    "uuid",
];

/// What a function yields.
#[derive(Clone, Copy)]
pub(super) enum Yields {
    Kind(Kind),
    /// A list of something.
    List(Kind),
    /// What it was called on.
    Target,
    /// An item of what it was called on.
    Item,
    /// An optional of the argument.
    OptionalOfArgument,
    /// An optional of an item of what it was called on.
    OptionalItem,
}

/// What the function of that name yields; `None` if there is none of that name.
pub(super) fn of(name: &str) -> Option<Yields> {
    use Kind::{Bool, Bytes, Double, Duration, Dyn, Int, Opaque, Optional, String, Timestamp, Uint};
    Some(match name {
        "contains"
        | "startsWith"
        | "endsWith"
        | "matches"
        | "isSorted"
        | "isURL"
        | "isIP"
        | "isCIDR"
        | "isQuantity"
        | "isSemver"
        | "isInteger"
        | "isGreaterThan"
        | "isLessThan"
        | "hasValue"
        | "ip.isCanonical"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast"
        | "containsIP"
        | "containsCIDR"
        | "sets.contains"
        | "sets.intersects"
        | "sets.equivalent"
        | "bool" => Yields::Kind(Bool),
        "size" | "int" | "indexOf" | "lastIndexOf" | "asInteger" | "sign" | "compareTo" | "major" | "minor"
        | "patch" | "prefixLength" | "family" | "getDate" | "getDayOfMonth" | "getDayOfWeek" | "getDayOfYear"
        | "getFullYear" | "getHours" | "getMilliseconds" | "getMinutes" | "getMonth" | "getSeconds" => {
            Yields::Kind(Int)
        }
        "string" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "replace" | "charAt" | "join" | "format"
        | "find" | "strings.quote" | "getScheme" | "getHost" | "getHostname" | "getPort" | "getEscapedPath" => {
            Yields::Kind(String)
        }
        "double" | "asApproximateFloat" => Yields::Kind(Double),
        "uint" => Yields::Kind(Uint),
        "bytes" => Yields::Kind(Bytes),
        "timestamp" => Yields::Kind(Timestamp),
        "duration" => Yields::Kind(Duration),
        "split" | "findAll" => Yields::List(String),
        "lists.range" => Yields::List(Int),
        "distinct" | "sort" | "slice" | "reverse" | "masked" | "add" | "sub" | "or" => Yields::Target,
        "min" | "max" | "sum" | "value" | "orValue" => Yields::Item,
        "quantity" => Yields::Kind(Opaque("kubernetes.Quantity")),
        "semver" => Yields::Kind(Opaque("kubernetes.Semver")),
        "url" => Yields::Kind(Opaque("kubernetes.URL")),
        "ip" => Yields::Kind(Opaque("net.IP")),
        "cidr" => Yields::Kind(Opaque("net.CIDR")),
        "optional.of" | "optional.ofNonZeroValue" => Yields::OptionalOfArgument,
        "first" | "last" => Yields::OptionalItem,
        "optional.none" | "format.named" | "validate" => Yields::Kind(Optional),
        "flatten" | "getQuery" | "dyn" | "type" => Yields::Kind(Dyn),
        _ if name.strip_prefix("format.").is_some_and(|name| NAMED_FORMATS.contains(&name)) => {
            Yields::Kind(Opaque("kubernetes.NamedFormat"))
        }
        _ => return None,
    })
}

/// What a function can be called on, where that is a matter of one or two types.
pub(super) fn called_on(name: &str) -> Option<&'static [Kind]> {
    Some(match name {
        "startsWith" | "endsWith" | "contains" | "matches" | "lowerAscii" | "upperAscii" | "substring" | "trim"
        | "replace" | "charAt" | "split" | "find" | "findAll" | "format" => &[Kind::String],
        "indexOf" | "lastIndexOf" => &[Kind::String, Kind::List],
        "join" | "sum" | "isSorted" | "sort" | "slice" | "reverse" | "distinct" | "flatten" | "first" | "last"
        | "min" | "max" => &[Kind::List],
        "size" => &[Kind::String, Kind::Bytes, Kind::List, Kind::Map],
        "hasValue" | "value" | "or" | "orValue" => &[Kind::Optional],
        "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds" => &[Kind::Timestamp, Kind::Duration],
        "getFullYear" | "getMonth" | "getDate" | "getDayOfMonth" | "getDayOfWeek" | "getDayOfYear" => {
            &[Kind::Timestamp]
        }
        _ => return None,
    })
}

/// What the first argument of a function can be, where that is a matter of few types.
pub(super) fn takes(name: &str, is_method: bool) -> Option<&'static [Kind]> {
    use Kind::{Bool, Bytes, Double, Duration, Int, List, Map, String, Timestamp, Uint};
    Some(match (name, is_method) {
        ("startsWith" | "endsWith" | "contains" | "find" | "findAll" | "split" | "replace", true) => &[String],
        ("matches", _) => &[String],
        (
            "quantity" | "isQuantity" | "url" | "isURL" | "ip" | "isIP" | "ip.isCanonical" | "cidr" | "isCIDR"
            | "semver" | "isSemver" | "strings.quote",
            false,
        ) => &[String],
        ("size", false) => &[String, Bytes, List, Map],
        ("int", false) => &[Int, Uint, Double, String, Timestamp, Duration],
        ("uint" | "double", false) => &[Int, Uint, Double, String],
        ("bool", false) => &[Bool, String],
        ("bytes", false) => &[Bytes, String],
        ("duration", false) => &[Duration, String, Int],
        ("timestamp", false) => &[Timestamp, String, Int],
        _ => return None,
    })
}

/// The type that a call yields.
pub(super) fn result(yields: Yields, target: Option<&Arc<Decl>>, argument: Option<&Arc<Decl>>) -> Arc<Decl> {
    let on = target.or(argument);
    let inside = || on.and_then(|decl| decl.element()).unwrap_or_else(|| Decl::of_kind(Kind::Dyn));
    match yields {
        Yields::Kind(kind) => Decl::of_kind(kind),
        Yields::List(kind) => {
            let max = on.map_or(u64::MAX, |decl| decl.max);
            Decl::containing(Kind::List, Decl::simple(kind, max, 1), max)
        }
        Yields::Target => on.cloned().unwrap_or_else(|| Decl::of_kind(Kind::Dyn)),
        Yields::Item => inside(),
        Yields::OptionalItem => Decl::containing(Kind::Optional, inside(), 1),
        Yields::OptionalOfArgument => {
            let inner = argument.cloned().unwrap_or_else(|| Decl::of_kind(Kind::Dyn));
            Decl::containing(Kind::Optional, inner, 1)
        }
    }
}

/// A type as the original's messages write it.
pub(super) fn written(decl: &Decl) -> String {
    let inside = || decl.element().map_or_else(|| "dyn".into(), |element| written(&element));
    match decl.kind {
        Kind::Dyn => "dyn".into(),
        Kind::Null => "null".into(),
        Kind::Bool => "bool".into(),
        Kind::Int => "int".into(),
        Kind::Uint => "uint".into(),
        Kind::Double => "double".into(),
        Kind::String => "string".into(),
        Kind::Bytes => "bytes".into(),
        Kind::Timestamp => "timestamp".into(),
        Kind::Duration => "duration".into(),
        Kind::List => format!("list({})", inside()),
        Kind::Map => format!("map({}, {})", written(&Decl::of_kind(decl.key)), inside()),
        Kind::Object => "object".into(),
        Kind::Optional => format!("optional_type({})", inside()),
        Kind::Opaque(name) => name.into(),
    }
}
