//! The manifests as text, the way they stand in `deploy/`, comments included: who installs an operator wants to know what
//! each of its rights is for.

use kube::{
    api::{ApiResource, DynamicObject},
    core::TypeMeta,
};
use serde::Deserialize as _;
use serde_json::Value;

use super::marks::resource;
use crate::settings::plain_selector;

/// Where the operator lives unless another namespace is named; also the word that stands for it in `deploy/`.
pub const DEFAULT_NAMESPACE: &str = "evenkeel";

const NAMESPACE: &str = include_str!("../../../../deploy/operator/00-namespace.yaml");
/// Everything else but the CRDs, in the order in which it is needed.
const REST: [&str; 8] = [
    include_str!("../../../../deploy/operator/service-account.yaml"),
    include_str!("../../../../deploy/operator/cluster-role.yaml"),
    include_str!("../../../../deploy/operator/cluster-role-binding.yaml"),
    include_str!("../../../../deploy/operator/lease-role.yaml"),
    include_str!("../../../../deploy/operator/definition-role.yaml"),
    include_str!("../../../../deploy/operator/rack-role.yaml"),
    include_str!("../../../../deploy/operator/rack-binding-role.yaml"),
    include_str!("../../../../deploy/operator/deployment.yaml"),
];
/// The image that the manifests name until somebody names one. None is published; a name that nobody can register keeps it
/// so that nobody else publishes one, which would run with the operator's rights.
const IMAGE: &str = concat!("registry.invalid/evenkeel:", env!("CARGO_PKG_VERSION"));
/// Every namespace, in the words of `STRIMZI_NAMESPACE`.
const ALL: &str = "*";
/// The longest label, and so the longest name of a namespace, that Kubernetes takes.
const LONGEST_LABEL: usize = 63;

/// What is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifests {
    namespace: String,
    /// None: none is named.
    image: Option<String>,
    /// The namespaces that the operator looks after. None: none are named.
    watched: Option<String>,
    /// The labels that a Kafka must have. None: none are named. Empty: none are wanted.
    selector: Option<String>,
    /// Whether the CRDs are among them.
    pub crds: bool,
}

/// Something that no manifest can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// No namespace is called like that.
    #[error("`{0}` cannot be the name of a namespace: write small letters, digits and dashes")]
    Namespace(String),
    /// No image is called like that.
    #[error("`{0}` cannot be the name of an image")]
    Image(String),
    /// No Kafka can be told by that.
    #[error("`{0}` cannot be a selector: write `name=value` pairs with commas between them")]
    Selector(String),
    /// A bug of ours: a manifest cannot be read back.
    #[error("a manifest of ours cannot be read: {0}")]
    Manifest(String),
}

impl Default for Manifests {
    fn default() -> Self {
        Self { namespace: DEFAULT_NAMESPACE.to_owned(), image: None, watched: None, selector: None, crds: true }
    }
}

impl Manifests {
    /// The operator in another namespace, or from another image.
    pub fn new(namespace: Option<&str>, image: Option<&str>) -> Result<Self, Invalid> {
        let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
        if !is_label(namespace) {
            return Err(Invalid::Namespace(namespace.to_owned()));
        }
        // Whatever else it may be, it must not end its line in the YAML, nor begin something new there.
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
        let is_image =
            |name: &str| name.bytes().all(fits) && name.starts_with(|first: char| first.is_ascii_alphanumeric());
        if let Some(image) = image.filter(|image| !is_image(image)) {
            return Err(Invalid::Image(image.to_owned()));
        }
        Ok(Self { namespace: namespace.to_owned(), image: image.map(str::to_owned), ..Self::default() })
    }

    /// The operator looks after these namespaces only, or after all of them (`*`).
    pub fn watching(self, namespaces: &[String]) -> Result<Self, Invalid> {
        let is_all = namespaces == [ALL];
        if let Some(other) = namespaces.iter().find(|name| !is_all && !is_label(name)) {
            return Err(Invalid::Namespace(other.clone()));
        }
        Ok(Self { watched: Some(namespaces.join(",")).filter(|all| !all.is_empty()), ..self })
    }

    /// The operator looks after Kafkas with these labels only, or whatever their labels are (an empty text).
    pub fn selecting(self, labels: Option<&str>) -> Result<Self, Invalid> {
        let plain = |labels: &str| plain_selector(labels).ok_or_else(|| Invalid::Selector(labels.to_owned()));
        Ok(Self { selector: labels.map(plain).transpose()?, ..self })
    }

    /// The image, if one is named.
    pub fn image(&self) -> Option<&str> {
        self.image.as_deref()
    }

    /// Whether the namespaces that the operator looks after are named.
    pub fn names_what_is_watched(&self) -> bool {
        self.watched.is_some()
    }

    /// Whether the labels are named that a Kafka must have.
    pub fn names_what_is_selected(&self) -> bool {
        self.selector.is_some()
    }

    /// Where the operator lives.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// All of them as YAML documents, ready for `kubectl apply`.
    pub fn yaml(&self) -> Result<String, Invalid> {
        let mut documents = vec![self.fitted(NAMESPACE)];
        if self.crds {
            documents.push(evenkeel_api::crds_yaml().map_err(|error| Invalid::Manifest(error.to_string()))?);
        }
        documents.extend(REST.map(|text| self.fitted(text)));
        Ok(documents.join("---\n"))
    }

    /// The same as objects, in the order in which they are put.
    pub(super) fn objects(&self) -> Result<Vec<(ApiResource, DynamicObject)>, Invalid> {
        let unreadable = |error: &dyn std::fmt::Display| Invalid::Manifest(error.to_string());
        let documents: Vec<Value> = serde_saphyr::from_multiple(&self.yaml()?).map_err(|error| unreadable(&error))?;
        let object = |document: Value| {
            let object = DynamicObject::deserialize(document).map_err(|error| unreadable(&error))?;
            let TypeMeta { api_version, kind } = object.types.clone().unwrap_or_default();
            let known = resource(&kind).filter(|known| known.api_version == api_version);
            Ok((known.ok_or_else(|| unreadable(&format_args!("what is a {kind} of {api_version}?")))?, object))
        };
        documents.into_iter().map(object).collect()
    }

    fn fitted(&self, text: &str) -> String {
        let lines = text.lines().map(|line| match line.trim_start() {
            "namespace: evenkeel" => line.replace(DEFAULT_NAMESPACE, &self.namespace),
            "name: evenkeel" => line.replace(DEFAULT_NAMESPACE, &self.namespace),
            // The operator's own, and the one that it gives to engines and brokers.
            word if word.starts_with("image: ") || word.starts_with("value: ") => {
                line.replace(IMAGE, self.image.as_deref().unwrap_or(IMAGE))
            }
            word if word.contains("STRIMZI_NAMESPACE") => {
                let watched = line.replace(ALL, self.watched.as_deref().unwrap_or(ALL));
                // The manifests do not name this one otherwise: whoever has set it on the cluster keeps it.
                let selector = self.selector.as_ref().map(|labels| {
                    let indent = &line[..line.len() - word.len()];
                    format!("\n{indent}- {{name: STRIMZI_CUSTOM_RESOURCE_SELECTOR, value: \"{labels}\"}}")
                });
                watched + selector.as_deref().unwrap_or_default()
            }
            _ => line.to_owned(),
        });
        lines.map(|line| line + "\n").collect()
    }
}

/// Whether a namespace can be called that.
fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= LONGEST_LABEL
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use kube::ResourceExt;

    use super::*;

    #[test]
    fn what_is_printed_is_what_stands_in_deploy() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let mut left = Manifests::default().yaml().unwrap();
        for part in ["operator", "crds"] {
            for file in fs::read_dir(folder.join(part)).unwrap() {
                let text = fs::read_to_string(file.unwrap().path()).unwrap();
                assert_eq!(left.matches(&text).count(), 1, "{text}");
                left = left.replace(&text, "");
            }
        }
        assert_eq!(left.replace("---\n", ""), "", "and nothing else");
    }

    #[test]
    fn another_namespace_and_image_are_written_everywhere() {
        let manifests = Manifests::new(Some("ops"), Some("registry.example/evenkeel@sha256:ab")).unwrap();
        let objects = manifests.objects().unwrap();
        let namespaces: Vec<_> = objects.iter().filter_map(|(_, object)| object.namespace()).collect();
        assert_eq!(namespaces, ["ops"; 4]);
        assert_eq!(objects[0].1.name_any(), "ops");
        let text = manifests.yaml().unwrap();
        assert_eq!(
            text.matches("registry.example/evenkeel@sha256:ab\n").count(),
            2,
            "in the pod, and for what it makes"
        );
        assert!(!text.contains(".invalid"), "{text}");
        let subjects = objects.iter().filter_map(|(_, object)| object.data.pointer("/subjects/0/namespace"));
        assert!(subjects.inspect(|namespace| assert_eq!(**namespace, "ops")).count() == 4);
    }

    #[test]
    fn the_operator_gives_its_own_image_to_what_it_makes() {
        let manifests = Manifests::new(None, Some("registry.example/evenkeel:7")).unwrap().objects().unwrap();
        let deployment = manifests.iter().find(|(kind, _)| kind.kind == "Deployment").unwrap();
        let container = &deployment.1.data["spec"]["template"]["spec"]["containers"][0];
        let variables = container["env"].as_array().unwrap();
        let variable = |name: &str| {
            let found = variables.iter().find(|variable| variable["name"] == name)?;
            found["value"].as_str().map(str::to_owned)
        };
        let settings = crate::settings::Settings::read(variable, None).unwrap().clusters;
        for image in [container["image"].as_str().unwrap(), &settings.own_image, &settings.engine_image] {
            assert_eq!(image, "registry.example/evenkeel:7");
        }
    }

    #[test]
    fn what_is_watched_stands_in_the_variable_that_the_operator_reads() {
        let watched = |namespaces: &[&str]| -> Result<Vec<String>, Invalid> {
            let namespaces: Vec<String> = namespaces.iter().map(|name| (*name).to_owned()).collect();
            let manifests = Manifests::default().watching(&namespaces)?.objects()?;
            let deployment = manifests.iter().find(|(kind, _)| kind.kind == "Deployment").unwrap();
            let variables = &deployment.1.data["spec"]["template"]["spec"]["containers"][0]["env"];
            let variable = |name: &str| {
                let found = variables.as_array()?.iter().find(|variable| variable["name"] == name)?;
                found["value"].as_str().map(str::to_owned)
            };
            Ok(crate::settings::Settings::read(variable, None).unwrap().namespaces)
        };
        assert_eq!(watched(&["kafka", "more"]), Ok(vec!["kafka".to_owned(), "more".to_owned()]));
        assert_eq!((watched(&["*"]), watched(&[])), (Ok(vec![]), Ok(vec![])));
        for wrong in [&["a", "*"][..], &["a\", b: \""], &[""]] {
            assert!(watched(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_selected_stands_in_the_variable_that_the_operator_reads() {
        let selector = |labels: Option<&str>| {
            let manifests = Manifests::default().selecting(labels).unwrap().objects().unwrap();
            let deployment = manifests.iter().find(|(kind, _)| kind.kind == "Deployment").unwrap();
            let variables = &deployment.1.data["spec"]["template"]["spec"]["containers"][0]["env"];
            let variables = variables.as_array().unwrap();
            let found = variables.iter().find(|variable| variable["name"] == "STRIMZI_CUSTOM_RESOURCE_SELECTOR");
            found.map(|found| found["value"].as_str().unwrap().to_owned())
        };
        assert_eq!(selector(None), None, "whoever has set it keeps it");
        assert_eq!(selector(Some("")), Some(String::new()));
        let written = selector(Some("team=a,\n example.com/tier==1")).unwrap();
        assert_eq!(written, "team=a,example.com/tier=1");
        let settings = crate::settings::Settings::read(|name| name.contains("SELECTOR").then(|| written.clone()), None);
        assert_eq!(settings.unwrap().selector, Some(written));
        for wrong in ["team", "team!=a", "team in (a,b)", "team=a\"}, {name: X, value: \"y", "team=a b"] {
            assert_eq!(Manifests::default().selecting(Some(wrong)), Err(Invalid::Selector(wrong.to_owned())));
        }
    }

    /// `kubectl apply -f deploy/operator` takes files in this order.
    #[test]
    fn the_namespace_comes_first_in_its_folder() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/operator");
        let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
        paths.sort();
        assert!(fs::read_to_string(&paths[0]).unwrap().contains("kind: Namespace\n"), "{paths:?}");
    }

    #[test]
    fn everything_carries_our_mark_and_is_known() {
        let all = Manifests::default().objects().unwrap();
        assert!(all.iter().all(|(_, object)| super::super::marks::is_ours(&object.metadata)), "{all:?}");
        let without = Manifests { crds: false, ..Manifests::default() }.objects().unwrap();
        assert_eq!(all.len() - without.len(), evenkeel_api::crds().len());
    }

    #[test]
    fn what_could_end_a_line_is_refused() {
        assert_eq!(Manifests::new(Some("Ops"), None), Err(Invalid::Namespace("Ops".into())));
        for image in ["", "a b", "a\nkind: Secret", "-x", "a#b"] {
            assert_eq!(Manifests::new(None, Some(image)), Err(Invalid::Image(image.into())));
        }
    }
}
