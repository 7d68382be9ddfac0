//! What the operator itself was told, as far as the objects of clusters depend on it.

use std::collections::BTreeMap;

/// Images, and what else does not stand in any resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Images of Kafka by version.
    pub kafka_images: BTreeMap<String, String>,
    /// The version for a Kafka that names none.
    pub kafka_version: String,
    /// The engine's image for a Kafka that names none: it is ours, and the operator's own unless another was named.
    pub engine_image: String,
    /// The image with the binary `evenkeel`, for the container that finds out a node's rack.
    pub own_image: String,
    /// Names and addresses that certificates of nodes and of the engine are good for besides: a local run reaches
    /// all of them by the address of this machine.
    pub extra_names: Vec<String>,
    /// Where the operator runs, if that is not where the cluster is.
    pub operator_namespace: Option<String>,
}

/// The version of Kafka that is taken without a choice: the newest that is tried, and the one that simulated brokers
/// speak like.
pub const DEFAULT_KAFKA_VERSION: &str = "4.3.1";

impl Default for Settings {
    fn default() -> Self {
        // None is published: whoever runs the operator names one (`EVENKEEL_IMAGE`). Nobody can register this name.
        let own = format!("registry.invalid/evenkeel:{}", env!("CARGO_PKG_VERSION"));
        Self {
            kafka_images: BTreeMap::new(),
            kafka_version: DEFAULT_KAFKA_VERSION.to_owned(),
            engine_image: own.clone(),
            own_image: own,
            extra_names: Vec::new(),
            operator_namespace: None,
        }
    }
}

impl Settings {
    /// The image of a version of Kafka: the one that was named for it, else the official one.
    pub fn kafka_image(&self, version: &str) -> String {
        self.kafka_images.get(version).cloned().unwrap_or_else(|| Self::official_image(version))
    }

    /// Apache's own image of a version of Kafka.
    pub fn official_image(version: &str) -> String {
        format!("apache/kafka:{version}")
    }

    /// Reads images by version as Strimzi's operator takes them: `4.1.0=image` pairs, one a line or with blanks
    /// between them. None if something in it is no such pair.
    pub fn read_images(text: &str) -> Option<BTreeMap<String, String>> {
        let pairs = text.split_whitespace().map(|pair| {
            let (version, image) = pair.split_once('=')?;
            (!version.is_empty() && !image.is_empty()).then(|| (version.to_owned(), image.to_owned()))
        });
        pairs.collect()
    }
}

/// Whether a version is at least this one. What is no version is not.
pub fn at_least(version: &str, major: u32, minor: u32) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    matches!((parts.next().flatten(), parts.next().flatten()), (Some(a), Some(b)) if (a, b) >= (major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_read_by_version() {
        let images = Settings::read_images("4.0.0=a/b:1\n  4.1.0=c:5000/d:2\n\n").unwrap();
        let settings = Settings { kafka_images: images, ..Settings::default() };
        assert_eq!(settings.kafka_image("4.1.0"), "c:5000/d:2");
        assert_eq!(settings.kafka_image("4.2.0"), "apache/kafka:4.2.0");
        assert_eq!(Settings::read_images("4.0.0=a nonsense"), None);
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert!(at_least("4.10.0", 4, 3) && at_least("4.3.0", 4, 3) && at_least("5.0", 4, 3));
        assert!(!at_least("4.2.9", 4, 3) && !at_least("latest", 4, 3) && !at_least("4", 4, 3));
    }
}
