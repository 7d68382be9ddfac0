//! Content negotiation: in which form an answer goes out, and in which form a body came in.

use crate::refusal::Refusal;

/// Media types that answers are written in.
const ANSWERS: &str = "application/json, application/yaml";
/// Media types that watches are written in.
const STREAMS: &str = "application/json;stream=watch";
/// Protobuf in Kubernetes' envelope.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// JSON or YAML.
    pub encoding: Encoding,
    /// The object itself, or something made of it.
    pub form: Form,
    /// Indented, for people.
    pub pretty: bool,
}

/// A text form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
}

/// What is made of an object before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Nothing: the object.
    Whole,
    /// Rows and columns for people.
    Table(MetaVersion),
    /// Only the metadata of one object.
    Partial(MetaVersion),
    /// Only the metadata of each object of a list.
    PartialList(MetaVersion),
}

/// Version of `meta.k8s.io`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetaVersion {
    /// `v1`.
    V1,
    /// `v1beta1`, which old clients still ask for.
    V1beta1,
}

impl MetaVersion {
    /// `meta.k8s.io/v1` or its older sister.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// Which version of aggregated discovery a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discovery {
    /// One document per group version.
    Legacy,
    /// `apidiscovery.k8s.io/v2`.
    V2,
    /// `apidiscovery.k8s.io/v2beta1`, the only one that kubectl before 1.30 knows.
    V2beta1,
}

/// Chooses the form of the answer to a request about objects.
pub fn answer(accept: Option<&str>) -> Result<Accepted, Refusal> {
    let Some(accept) = accept.filter(|header| !header.is_empty()) else {
        return Ok(Accepted { encoding: Encoding::Json, form: Form::Whole, pretty: false });
    };
    clauses(accept).iter().find_map(Clause::accepted).ok_or_else(|| Refusal::not_acceptable(ANSWERS))
}

/// Chooses the form of a watch's events. YAML has no framing, so it cannot be streamed.
pub fn stream(accept: Option<&str>) -> Result<Form, Refusal> {
    match answer(accept) {
        Ok(Accepted { encoding: Encoding::Json, form, .. }) => Ok(form),
        _ => Err(Refusal::not_acceptable(STREAMS)),
    }
}

/// Whether a client reads the documents of discovery at all, in any of their forms.
pub fn reads_discovery(accept: Option<&str>) -> Result<(), Refusal> {
    let Some(accept) = accept.filter(|header| !header.is_empty()) else { return Ok(()) };
    let whole = |clause: &Clause<'_>| clause.accepted().is_some_and(|accepted| accepted.form == Form::Whole);
    let reads = clauses(accept).iter().any(|clause| clause.discovery().is_some() || whole(clause));
    if reads { Ok(()) } else { Err(Refusal::not_acceptable(ANSWERS)) }
}

/// Chooses the form of `/api` and `/apis`.
pub fn discovery(accept: Option<&str>) -> Discovery {
    let clauses = clauses(accept.unwrap_or_default());
    clauses.iter().find_map(Clause::discovery).unwrap_or(Discovery::Legacy)
}

/// One media type of an `Accept` header.
struct Clause<'a> {
    kind: &'a str,
    subkind: &'a str,
    params: Vec<(&'a str, &'a str)>,
    quality: f32,
}

/// The clauses of an `Accept` header, the most wanted first: by quality, then by how exact they are, then as written.
fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality).then(b.exactness().cmp(&a.exactness())));
    clauses
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subkind) = parts.next()?.split_once('/')?;
        let mut clause = Self { kind: kind.trim(), subkind: subkind.trim(), params: Vec::new(), quality: 1.0 };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            let (key, value) = (key.trim(), value.trim().trim_matches('"'));
            if key == "q" {
                clause.quality = value.parse().unwrap_or(1.0);
            } else {
                clause.params.push((key, value));
            }
        }
        (clause.quality > 0.0).then_some(clause)
    }

    fn exactness(&self) -> u8 {
        u8::from(self.kind != "*") + u8::from(self.subkind != "*")
    }

    fn param(&self, key: &str) -> Option<&'a str> {
        self.params.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }

    fn encoding(&self) -> Option<Encoding> {
        match (self.kind, self.subkind) {
            ("application", "json" | "*") | ("*", "*") => Some(Encoding::Json),
            ("application", "yaml") => Some(Encoding::Yaml),
            _ => None,
        }
    }

    fn accepted(&self) -> Option<Accepted> {
        let encoding = self.encoding()?;
        if self.param("stream").is_some_and(|stream| !stream.is_empty() && stream != "watch") {
            return None;
        }
        let form = match (self.param("as"), self.param("g"), self.param("v")) {
            (None, None, None) => Form::Whole,
            (Some(kind), Some("meta.k8s.io"), Some(version)) => {
                let version = match version {
                    "v1" => MetaVersion::V1,
                    "v1beta1" => MetaVersion::V1beta1,
                    _ => return None,
                };
                match kind {
                    "Table" => Form::Table(version),
                    "PartialObjectMetadata" => Form::Partial(version),
                    "PartialObjectMetadataList" => Form::PartialList(version),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Accepted { encoding, form, pretty: self.param("pretty") == Some("1") })
    }

    fn discovery(&self) -> Option<Discovery> {
        self.encoding().filter(|encoding| *encoding == Encoding::Json)?;
        match (self.param("as"), self.param("g"), self.param("v")) {
            (None, None, None) => Some(Discovery::Legacy),
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2")) => Some(Discovery::V2),
            (Some("APIGroupDiscoveryList"), Some("apidiscovery.k8s.io"), Some("v2beta1")) => Some(Discovery::V2beta1),
            _ => None,
        }
    }
}

/// Whether the client looks like a person at a terminal or a browser: they get indented answers unasked.
pub fn is_person(user_agent: &str) -> bool {
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|product| user_agent.starts_with(product))
}

/// The form of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyForm {
    /// `application/json`, also when nothing is said.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`, which typed clients send for built-in kinds.
    Protobuf,
}

/// Reads the content type of an object; where there is none it is JSON. Custom resources have no protobuf form.
pub fn body(content_type: Option<&str>, custom: bool) -> Result<BodyForm, Refusal> {
    match media_type(content_type.filter(|header| !header.is_empty()).or(Some("application/json"))).as_str() {
        "application/json" => Ok(BodyForm::Json),
        "application/yaml" => Ok(BodyForm::Yaml),
        PROTOBUF if !custom => Ok(BodyForm::Protobuf),
        _ if custom => Err(Refusal::unsupported_media_type(ANSWERS)),
        _ => Err(Refusal::unsupported_media_type(&format!("{ANSWERS}, {PROTOBUF}"))),
    }
}

/// The kinds of patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchForm {
    /// `application/json-patch+json`.
    Json,
    /// `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`.
    Strategic,
    /// `application/apply-patch+yaml`.
    Apply,
}

/// Reads the content type of a patch. Strategic merge needs compiled-in merge keys, which custom resources lack.
pub fn patch(content_type: Option<&str>, custom: bool) -> Result<PatchForm, Refusal> {
    match media_type(content_type).as_str() {
        "application/json-patch+json" => Ok(PatchForm::Json),
        "application/merge-patch+json" => Ok(PatchForm::Merge),
        "application/strategic-merge-patch+json" if !custom => Ok(PatchForm::Strategic),
        "application/apply-patch+yaml" => Ok(PatchForm::Apply),
        _ if custom => Err(Refusal::unsupported_media_type(
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        // The original's router turns these away before anybody who knows the accepted types is asked.
        _ => Err(Refusal::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")),
    }
}

fn media_type(header: Option<&str>) -> String {
    header.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &str) -> Option<(Encoding, Form)> {
        answer(Some(accept)).ok().map(|a| (a.encoding, a.form))
    }

    #[test]
    fn kubectls_table_header_gives_a_table_and_a_plain_client_json() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form(kubectl), Some((Encoding::Json, Form::Table(MetaVersion::V1))));
        assert_eq!(answer(None).map(|a| a.form), Ok(Form::Whole));
        assert_eq!(form("*/*"), Some((Encoding::Json, Form::Whole)));
    }

    #[test]
    fn protobuf_alone_is_not_acceptable_but_may_come_first() {
        assert_eq!(form(PROTOBUF), None);
        assert_eq!(form(&format!("{PROTOBUF},application/json")), Some((Encoding::Json, Form::Whole)));
        let refusal = answer(Some("text/html")).expect_err("no HTML here");
        assert_eq!(refusal.code, 406);
        let offered = "only the following media types are accepted: application/json, application/yaml";
        assert_eq!(refusal.message, offered, "protobuf is read, never written");
    }

    #[test]
    fn quality_decides_before_order_and_unknown_forms_are_skipped() {
        assert_eq!(form("application/json;q=0.1, application/yaml"), Some((Encoding::Yaml, Form::Whole)));
        assert_eq!(form("*/*, application/yaml"), Some((Encoding::Yaml, Form::Whole)), "exact before wildcard");
        assert_eq!(
            form("application/json;as=Poem;g=meta.k8s.io;v=v1, application/yaml"),
            Some((Encoding::Yaml, Form::Whole))
        );
        assert_eq!(form("application/json;q=0"), None);
    }

    #[test]
    fn metadata_forms_are_recognised() {
        assert_eq!(
            form("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            Some((Encoding::Json, Form::PartialList(MetaVersion::V1)))
        );
        assert_eq!(
            stream(Some("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")),
            Ok(Form::Partial(MetaVersion::V1))
        );
        assert!(stream(Some("application/yaml")).is_err(), "YAML cannot be streamed");
    }

    #[test]
    fn discovery_is_given_in_the_version_asked_for() {
        let new = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(discovery(Some(new)), Discovery::V2);
        let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(discovery(Some(old)), Discovery::V2beta1);
        assert_eq!(discovery(Some("application/json")), Discovery::Legacy);
        assert_eq!(discovery(None), Discovery::Legacy);
    }

    #[test]
    fn strategic_merge_is_for_built_in_kinds_only() {
        let strategic = Some("application/strategic-merge-patch+json; charset=utf-8");
        assert_eq!(patch(strategic, false), Ok(PatchForm::Strategic));
        assert_eq!(
            patch(strategic, true).map_err(|r| r.message),
            Err("the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
                .to_owned())
        );
        assert!(patch(Some("application/json"), false).is_err());
        assert_eq!(body(None, true), Ok(BodyForm::Json));
        assert!(body(Some(PROTOBUF), true).is_err());
    }
}
