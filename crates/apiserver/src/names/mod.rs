//! Names: which texts may name an object, a label, an annotation or a finalizer, and how generated ones look.
//!
//! The complaints are the original's, because people search for them and tools show them.

mod metadata;

pub(crate) use metadata::{FOREGROUND, ORPHAN, STANDARD_FINALIZERS};
pub use metadata::{validate_builtin_finalizers, validate_metadata};

const LABEL_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_FORM: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035_FORM: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED_FORM: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// Longest DNS label, label name and label value.
const LABEL_LENGTH: usize = 63;
/// Longest DNS subdomain.
const SUBDOMAIN_LENGTH: usize = 253;

/// What the name of an object of some kind must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameRule {
    /// Dot-separated DNS labels: most kinds, and all custom resources.
    #[default]
    Subdomain,
    /// One DNS label (RFC 1123): namespaces.
    Label,
    /// One DNS label that starts with a letter (RFC 1035): services.
    Label1035,
    /// Anything that can stand in a URL path: roles and their bindings.
    PathSegment,
}

impl NameRule {
    /// What is wrong with `name`; nothing if it is fine.
    pub fn complaints(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => subdomain(name, "characters"),
            Self::Label => label(name),
            Self::Label1035 => label_1035(name),
            Self::PathSegment => path_segment(name),
        }
    }

    /// What is wrong with `prefix` as the start of a generated name.
    pub fn prefix_complaints(self, prefix: &str) -> Vec<String> {
        match self {
            // `.` and `..` are fine: something follows them.
            Self::PathSegment => forbidden_in_paths(prefix),
            _ => self.complaints(&masked(prefix)),
        }
    }
}

/// A trailing dash is fine in a prefix, so it is hidden from the rules. The original overwrites the character before
/// it, too; that one is checked with the generated name.
fn masked(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut masked = rest.to_owned();
            masked.pop();
            masked.push('a');
            masked
        }
        _ => prefix.to_owned(),
    }
}

/// What is wrong with a label's key, a finalizer or an (already lower-cased) annotation key: an optional DNS
/// subdomain and `/`, then a name.
pub fn qualified_name(text: &str) -> Vec<String> {
    let rule = complaint(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
        QUALIFIED_FORM,
        &["MyName", "my.name", "123-abc"],
    );
    let mut complaints = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            complaints.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            complaints.extend(subdomain(prefix, "bytes").into_iter().map(|c| format!("prefix part {c}")));
            name
        }
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH {
        complaints.push(format!("name part must be no more than {LABEL_LENGTH} bytes"));
    }
    if !is_qualified(name) {
        complaints.push(format!("name part {rule}"));
    }
    complaints
}

/// What is wrong with a label's value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > LABEL_LENGTH {
        complaints.push(format!("must be no more than {LABEL_LENGTH} bytes"));
    }
    if !text.is_empty() && !is_qualified(text) {
        complaints.push(complaint(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &format!("({QUALIFIED_FORM})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    complaints
}

/// The original counts bytes everywhere, but calls them characters where it checks names.
fn subdomain(text: &str, unit: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH {
        complaints.push(format!("must be no more than {SUBDOMAIN_LENGTH} {unit}"));
    }
    if !is_subdomain(text) {
        complaints.push(complaint(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            SUBDOMAIN_FORM,
            &["example.com"],
        ));
    }
    complaints
}

fn label(text: &str) -> Vec<String> {
    let mut complaints = too_long_for_a_label(text);
    if !is_label(text) {
        complaints.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            complaint(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character",
                LABEL_FORM,
                &["my-name", "123-abc"],
            )
        });
    }
    complaints
}

fn label_1035(text: &str) -> Vec<String> {
    let mut complaints = too_long_for_a_label(text);
    if !is_label(text) || !text.starts_with(|c: char| c.is_ascii_lowercase()) {
        complaints.push(complaint(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            LABEL_1035_FORM,
            &["my-name", "abc-123"],
        ));
    }
    complaints
}

fn too_long_for_a_label(text: &str) -> Vec<String> {
    if text.len() <= LABEL_LENGTH {
        return Vec::new();
    }
    vec![format!("must be no more than {LABEL_LENGTH} characters")]
}

fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => forbidden_in_paths(text),
    }
}

fn forbidden_in_paths(text: &str) -> Vec<String> {
    let found = ['/', '%'].into_iter().filter(|c| text.contains(*c));
    found.map(|c| format!("may not contain '{c}'")).collect()
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    enclosed(text, allowed, |b| b == b'-')
}

fn is_qualified(text: &str) -> bool {
    enclosed(text, |b| b.is_ascii_alphanumeric(), |b| matches!(b, b'-' | b'_' | b'.'))
}

/// Made of `outer` and `inner` bytes, and beginning and ending with an `outer` one.
fn enclosed(text: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    outer(*first) && outer(*last) && bytes.iter().all(|b| outer(*b) || inner(*b))
}

/// The original's sentence about a regular expression, its odd commas included.
fn complaint(rule: &str, form: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{form}')", examples.join(" or "))
}

/// How many characters are added to a `generateName`.
const SUFFIX_LENGTH: usize = 5;
/// Without vowels and look-alikes, so that no words come out.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// The name that `metadata.generateName` and some chance make. The base is cut so that the name fits in a DNS label.
pub fn generate_name(base: &str, entropy: u128) -> String {
    let mut name = base.to_owned();
    name.truncate(base.floor_char_boundary(LABEL_LENGTH - SUFFIX_LENGTH));
    let mut rest = entropy;
    for _ in 0..SUFFIX_LENGTH {
        let letters = SUFFIX_ALPHABET.len() as u128;
        name.push(char::from(SUFFIX_ALPHABET[(rest % letters) as usize]));
        rest /= letters;
    }
    name
}

/// How many names are tried before a `generateName` is given up.
const NAMES_TRIED: u32 = 8;

/// A name made of `base` that is not taken; the last one tried if all of them are.
pub fn free_name(base: &str, entropy: u128, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = String::new();
    for n in 0..NAMES_TRIED {
        // Every turn is another number, and the same one for the same chance.
        name = generate_name(base, entropy.rotate_right(16 * n));
        if !is_taken(&name) {
            break;
        }
    }
    name
}

/// A uid made of `entropy`: the form of a random (version 4) UUID.
pub fn uid(entropy: u128) -> String {
    let random = (entropy & !(0xF << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{random:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_follow_the_rule_of_their_kind() {
        for (rule, fine, wrong) in [
            (NameRule::Subdomain, ["a", "a-b.c0", "1.2"], ["A", "a..b", "a-.b"]),
            (NameRule::Label, ["a", "0-a", "abc"], ["a.b", "-a", ""]),
            (NameRule::Label1035, ["a", "a-0", "abc"], ["0a", "a.b", "a-"]),
            (NameRule::PathSegment, ["system:node", "A b", "..."], ["..", "a/b", "100%"]),
        ] {
            for name in fine {
                assert_eq!(rule.complaints(name), Vec::<String>::new(), "{rule:?} {name}");
            }
            for name in wrong {
                assert_eq!(rule.complaints(name).len(), 1, "{rule:?} {name}");
            }
        }
    }

    #[test]
    fn complaints_are_worded_as_the_original_words_them() {
        assert_eq!(
            NameRule::Subdomain.complaints("A_b"),
            [
                r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ]
        );
        assert_eq!(NameRule::Label.complaints("a.b"), ["must not contain dots"]);
        assert_eq!(NameRule::PathSegment.complaints("a/b%c"), ["may not contain '/'", "may not contain '%'"]);
        assert_eq!(
            qualified_name("-x"),
            [
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
            ]
        );
        assert_eq!(qualified_name("/x"), ["prefix part must be non-empty"]);
        assert!(qualified_name("a/b/c")[0].starts_with("a valid label key must consist of"));
        assert!(qualified_name(&"x".repeat(64))[0].ends_with("no more than 63 bytes"));
        assert!(label_value("")[..].is_empty() && label_value("a b").len() == 1);
        assert_eq!(NameRule::Subdomain.complaints(&"a".repeat(254)), ["must be no more than 253 characters"]);
    }

    #[test]
    fn a_prefix_may_end_in_a_dash() {
        assert!(NameRule::Subdomain.prefix_complaints("my-").is_empty());
        assert!(NameRule::PathSegment.prefix_complaints("..").is_empty());
        assert!(!NameRule::Subdomain.prefix_complaints("-").is_empty());
        assert!(!NameRule::Label1035.prefix_complaints("1ab").is_empty());
    }

    #[test]
    fn a_uid_is_a_random_uuid() {
        assert_eq!(uid(0), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uid(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    proptest! {
        #[test]
        fn generated_names_are_valid_and_keep_their_base(base in "[a-z][a-z0-9]{0,80}-", entropy: u128) {
            let name = generate_name(&base, entropy);
            prop_assert!(NameRule::Label1035.complaints(&name).is_empty(), "{}", name);
            prop_assert!(base.starts_with(&name[..name.len() - 5]));
            prop_assert_eq!(name.len(), base.len().min(58) + 5);
        }

        #[test]
        fn no_text_makes_the_rules_panic(text in any::<String>(), entropy: u128) {
            for rule in [NameRule::Subdomain, NameRule::Label, NameRule::Label1035, NameRule::PathSegment] {
                rule.complaints(&text);
                rule.prefix_complaints(&text);
            }
            qualified_name(&text);
            label_value(&text);
            generate_name(&text, entropy);
        }
    }
}
