//! What a URL path asks for. Resources come and go at run time, so paths are parsed, not registered.

/// The thing behind a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `/`: the list of paths.
    Index,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`, and their single checks.
    Health(String),
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`.
    GroupVersion(GroupVersion),
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v3/api/v1`, `/openapi/v3/apis/<group>/<version>`.
    OpenApi(GroupVersion),
    /// Objects.
    Resource(ResourcePath),
    /// Nothing that is served here.
    Unknown,
}

/// An API group and one of its versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupVersion {
    /// Empty for the core group.
    pub group: String,
    /// E.g. `v1`.
    pub version: String,
}

/// A path below a group version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourcePath {
    /// Group and version.
    pub at: GroupVersion,
    /// Namespace, if the path names one.
    pub namespace: Option<String>,
    /// Lower-case plural.
    pub plural: String,
    /// Name of one object.
    pub name: Option<String>,
    /// What follows the name, e.g. `status`.
    pub subresource: Option<String>,
    /// The path itself asks for a watch, as old clients do: `/api/v1/watch/pods`.
    pub watch: bool,
}

impl Route {
    /// Whether it matters by which method the path is asked: these documents answer to every one of them.
    pub fn takes_any_method(&self) -> bool {
        matches!(
            self,
            Self::Index | Self::Health(_) | Self::Groups | Self::Group(_) | Self::OpenApiIndex | Self::OpenApi(_)
        )
    }

    /// Reads a path as it stands in the request line.
    pub fn parse(path: &str) -> Self {
        match Self::at(path) {
            // Elsewhere a slash at the end says nothing.
            Self::Health(_) | Self::OpenApi(_) if path.ends_with('/') => Self::Unknown,
            route => route,
        }
    }

    fn at(path: &str) -> Self {
        let Some(segments) = segments(path) else { return Self::Unknown };
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        match parts.as_slice() {
            [] => Self::Index,
            ["version"] => Self::Version,
            [check @ ("healthz" | "livez" | "readyz")] | [check @ ("healthz" | "livez" | "readyz"), "ping"] => {
                Self::Health((*check).to_owned())
            }
            ["api"] => Self::CoreVersions,
            ["apis"] => Self::Groups,
            ["api", version] => Self::GroupVersion(GroupVersion::new("", version)),
            ["apis", group] => Self::Group((*group).to_owned()),
            ["apis", group, version] => Self::GroupVersion(GroupVersion::new(group, version)),
            ["openapi", "v2"] => Self::OpenApiV2,
            ["openapi", "v3"] => Self::OpenApiIndex,
            ["openapi", "v3", "api", version] => Self::OpenApi(GroupVersion::new("", version)),
            ["openapi", "v3", "apis", group, version] => Self::OpenApi(GroupVersion::new(group, version)),
            ["api", version, rest @ ..] => resource(GroupVersion::new("", version), rest),
            ["apis", group, version, rest @ ..] => resource(GroupVersion::new(group, version), rest),
            _ => Self::Unknown,
        }
    }
}

impl GroupVersion {
    /// From its two parts.
    pub fn new(group: &str, version: &str) -> Self {
        Self { group: group.to_owned(), version: version.to_owned() }
    }

    /// `v1`, or `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `/api/v1`, or `/apis/group/version`.
    pub fn path(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        }
    }
}

fn resource(at: GroupVersion, rest: &[&str]) -> Route {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        _ => (false, rest),
    };
    // `namespaces/x/status` is about the namespace x itself; every other third segment is a resource inside it.
    let (namespace, rest) = match rest {
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
        _ => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(name), None),
        [plural, name, subresource] if !watch => (plural, Some(name), Some(subresource)),
        _ => return Route::Unknown,
    };
    Route::Resource(ResourcePath {
        at,
        namespace,
        plural: (*plural).to_owned(),
        name: name.map(|n| (*n).to_owned()),
        subresource: subresource.map(|s| (*s).to_owned()),
        watch,
    })
}

/// Decoded segments. `None` when one does not decode, or is empty in the middle (`//`): nothing is served there.
fn segments(path: &str) -> Option<Vec<String>> {
    let trimmed = path.strip_prefix('/').unwrap_or(path);
    let trimmed = trimmed.strip_suffix('/').unwrap_or(trimmed);
    if trimmed.is_empty() {
        return Some(Vec::new());
    }
    trimmed.split('/').map(|segment| if segment.is_empty() { None } else { percent_decoded(segment) }).collect()
}

/// Undoes percent encoding. `None` when the escape is broken or the bytes are no UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    String::from_utf8(percent_bytes(text)?).ok()
}

/// The bytes behind percent encoding. `None` when an escape is broken.
pub(super) fn percent_bytes(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(group: &str, version: &str, rest: [Option<&str>; 4]) -> Route {
        let [namespace, plural, name, subresource] = rest.map(|part| part.map(ToOwned::to_owned));
        let plural = plural.expect("a test names a plural");
        let at = GroupVersion::new(group, version);
        Route::Resource(ResourcePath { at, namespace, plural, name, subresource, watch: false })
    }

    #[test]
    fn a_path_may_ask_for_a_watch() {
        for (path, plain) in [
            ("/api/v1/watch/pods", "/api/v1/pods"),
            ("/api/v1/watch/namespaces", "/api/v1/namespaces"),
            ("/api/v1/watch/namespaces/a", "/api/v1/namespaces/a"),
            ("/apis/apps/v1/watch/namespaces/a/deployments/b", "/apis/apps/v1/namespaces/a/deployments/b"),
        ] {
            let (Route::Resource(watched), Route::Resource(plain)) = (Route::parse(path), Route::parse(plain)) else {
                panic!("{path} is about objects");
            };
            assert_eq!(watched, ResourcePath { watch: true, ..plain });
        }
        assert_eq!(Route::parse("/api/v1/watch/namespaces/a/pods/b/status"), Route::Unknown);
    }

    #[test]
    fn namespaces_are_both_a_resource_and_a_prefix() {
        let cases = [
            ("/api/v1/namespaces", [None, Some("namespaces"), None, None]),
            ("/api/v1/namespaces/a", [None, Some("namespaces"), Some("a"), None]),
            ("/api/v1/namespaces/a/status", [None, Some("namespaces"), Some("a"), Some("status")]),
            ("/api/v1/namespaces/a/finalize", [None, Some("namespaces"), Some("a"), Some("finalize")]),
            ("/api/v1/namespaces/a/pods", [Some("a"), Some("pods"), None, None]),
            ("/api/v1/namespaces/a/pods/b/log", [Some("a"), Some("pods"), Some("b"), Some("log")]),
        ];
        for (path, expected) in cases {
            assert_eq!(Route::parse(path), objects("", "v1", expected), "{path}");
        }
    }

    #[test]
    fn groups_and_versions_are_told_from_objects() {
        assert_eq!(Route::parse("/apis/apps/"), Route::Group("apps".into()));
        assert_eq!(Route::parse("/apis/apps/v1"), Route::GroupVersion(GroupVersion::new("apps", "v1")));
        assert_eq!(
            Route::parse("/apis/kafka.strimzi.io/v1/kafkas"),
            objects("kafka.strimzi.io", "v1", [None, Some("kafkas"), None, None])
        );
        assert_eq!(Route::parse("/openapi/v3/apis/apps/v1"), Route::OpenApi(GroupVersion::new("apps", "v1")));
        assert_eq!(Route::parse("/openapi/v2"), Route::OpenApiV2);
        assert_eq!(Route::parse("/livez/ping"), Route::Health("livez".into()));
        for nothing in ["/livez/nope", "/readyz/", "/openapi/v3/apis/apps/v1/"] {
            assert_eq!(Route::parse(nothing), Route::Unknown, "{nothing}");
        }
    }

    #[test]
    fn escapes_are_decoded_after_splitting_and_broken_ones_lead_nowhere() {
        assert_eq!(
            Route::parse("/api/v1/namespaces/a/configmaps/x%2Fy"),
            objects("", "v1", [Some("a"), Some("configmaps"), Some("x/y"), None])
        );
        for path in ["/api/v1/pods/%zz", "/api/v1/pods/%f", "/api/v1/pods/%ff", "/api//v1", "/api/v1/a/b/c/d"] {
            assert_eq!(Route::parse(path), Route::Unknown, "{path}");
        }
    }
}
