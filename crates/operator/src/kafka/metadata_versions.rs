//! Names of Kafka's metadata versions: brokers tell a number, people and `kafka-storage.sh` write a name.

/// The oldest level that brokers of Kafka 4 take.
const OLDEST: i16 = 7;

/// By level, from the oldest on.
const NAMES: [&str; 24] = [
    "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1",
    "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0",
    "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0",
];

/// The name of a level; None for one that is newer than this operator.
pub fn name(level: i16) -> Option<&'static str> {
    NAMES.get(usize::try_from(level.checked_sub(OLDEST)?).ok()?).copied()
}

/// Whether these are the same version: a release alone (`4.0`) is the last of its versions.
pub fn are_same(one: &str, other: &str) -> bool {
    whole(one) == whole(other)
}

fn whole(written: &str) -> &str {
    let is_of = |name: &&&str| name.strip_prefix(written).is_some_and(|rest| rest.starts_with('-'));
    NAMES.iter().rev().find(is_of).copied().unwrap_or(written)
}

/// The release that a version of Kafka or of its metadata belongs to: `4.3` of `4.3.1`, and of `4.3-IV0`. None if it is
/// neither.
pub fn release(written: &str) -> Option<(u32, u32)> {
    let (release, level) = written.split_once('-').map_or((written, None), |(release, level)| (release, Some(level)));
    let is_level = |level: &str| level.strip_prefix("IV").is_some_and(|number| number.parse::<u32>().is_ok());
    let numbers: Option<Vec<u32>> = release.split('.').map(|part| part.parse().ok()).collect();
    match numbers?[..] {
        [major, minor] | [major, minor, _] if level.is_none_or(is_level) => Some((major, minor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_have_names_as_far_as_they_are_known() {
        assert_eq!([7, 21, 25, 30].map(name), [Some("3.3-IV3"), Some("3.9-IV0"), Some("4.0-IV3"), Some("4.3-IV0")]);
        assert_eq!([6, 31, -1, i16::MIN].map(name), [None; 4]);
    }

    #[test]
    fn versions_belong_to_releases() {
        for of_four_three in ["4.3", "4.3.1", "4.3-IV0"] {
            assert_eq!(release(of_four_three), Some((4, 3)), "{of_four_three}");
        }
        for none in ["", "4", "banana", "4.x", "4.3-", "4.3-IV", "4.3-IVx", "4.3.1.2", "-4.3"] {
            assert_eq!(release(none), None, "{none}");
        }
    }

    #[test]
    fn a_release_is_the_last_of_its_versions() {
        assert!(are_same("4.0", "4.0-IV3") && are_same("4.1-IV1", "4.1") && are_same("4.0", "4.0"));
        assert!(!are_same("4.0", "4.0-IV2") && !are_same("4", "4.3-IV0") && !are_same("4.0", "4.1"));
        assert!(are_same("9.9", "9.9") && !are_same("9.9", "9.9-IV0"), "nobody knows");
    }
}
