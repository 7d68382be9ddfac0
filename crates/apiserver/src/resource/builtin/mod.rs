//! The kinds that are compiled in: what Kubernetes has of itself, as far as it is served here.

pub mod admission;
pub mod decode;
pub mod events;
pub mod habits;
mod kinds;
mod overlay;
mod quantity;
mod schemas;
mod selectors;
mod shape;
mod time;
mod unknown;
pub mod validation;
pub(crate) mod wire;

use std::sync::{Arc, LazyLock};

use super::{Origin, Resource, ScalePaths, Version};
use kinds::{KINDS, Kind};
pub use quantity::parse as parse_quantity;
pub use schemas::openapi_definitions;
pub use selectors::selector_text;
pub use shape::{shape, shape_metadata};
pub use unknown::drop_unknown_of_definitions;

/// All built-in resources.
pub fn resources() -> Vec<Resource> {
    KINDS.iter().map(resource).collect()
}

/// The verbs of a resource, as discovery lists them. Custom resources have all of them.
pub fn verbs(resource: &Resource) -> &'static [&'static str] {
    let builtin = match resource.origin {
        Origin::Builtin => kinds::find(&resource.group, &resource.plural),
        Origin::Custom => None,
    };
    builtin.map_or(kinds::ALL_VERBS, |kind| kind.verbs)
}

/// Reviews are asked and answered, never kept: all that can be done with them is to create one.
pub fn is_question(resource: &Resource) -> bool {
    verbs(resource) == ["create"]
}

/// Name of the resource's definition in OpenAPI, e.g. `io.k8s.api.core.v1.Pod`. None for custom resources.
pub fn definition_name(resource: &Resource) -> Option<&'static str> {
    let kind = kinds::find(&resource.group, &resource.plural)?;
    (resource.origin == Origin::Builtin).then_some(kind.definition)
}

/// What `/scale` speaks: a kind that is read and shown, and never stored.
pub fn scale() -> Arc<Resource> {
    static SCALE: LazyLock<Arc<Resource>> = LazyLock::new(|| Arc::new(resource(&kinds::SCALE)));
    SCALE.clone()
}

fn resource(kind: &Kind) -> Resource {
    let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    Resource {
        group: kind.group.into(),
        plural: kind.plural.into(),
        singular: kind.kind.to_lowercase(),
        kind: kind.kind.into(),
        list_kind: format!("{}List", kind.kind),
        short_names: owned(kind.short),
        categories: owned(kind.categories),
        namespaced: kind.namespaced,
        versions: vec![Version {
            name: "v1".into(),
            served: true,
            storage: true,
            deprecation: None,
            schema: schemas::schema(kind.definition),
            openapi: Arc::new(schemas::openapi(kind.definition)),
            columns: Vec::new(),
            selectable: owned(kind.selectable),
            status: kind.status,
            // The selector of a workload is an object; its text form is made where the scale is.
            scale: kind.scale.then(|| ScalePaths {
                spec_replicas: ".spec.replicas".into(),
                status_replicas: ".status.replicas".into(),
                label_selector: Some(".spec.selector".into()),
            }),
        }],
        origin: Origin::Builtin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_what_is_served() {
        let page = include_str!("../../../../../docs/compatibility.md");
        let (_, served) = page.split_once("\nServed, ").expect("a table of what is served");
        let (served, _) = served.split_once("\nNot served, ").expect("a table of what is not");
        let mut rows = 0;
        for resource in resources() {
            let at = resource.api_version(&resource.versions[0].name);
            let row = served.lines().find(|line| line.starts_with('|') && line.contains(&format!("`{at}`")));
            let row = row.unwrap_or_else(|| panic!("{at} is served, but not listed"));
            assert!(row.contains(&format!("`{}`", resource.plural)), "{} is missing in {row}", resource.plural);
            rows += 1;
        }
        // Beside one name per resource there are `v1`, `finalize`, the ten other groups, `status` and `scale`.
        assert_eq!(served.matches('`').count() / 2, rows + 14, "something is listed that is not served");
    }
}
