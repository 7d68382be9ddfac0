//! The reference page of the REST API, made from the declarations: `docs/rest.md` in the repository.

use std::fmt::Write;

use crate::endpoint::Endpoint;
use crate::parameter::Parameter;
use crate::request::{Presentation, Request};

/// The page.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    page.push_str("\n## Endpoints\n\n| method | endpoint | answers | least role | here |\n|---|---|---|---|---|\n");
    for endpoint in Endpoint::ALL {
        let facts = endpoint.facts();
        let answers = if facts.is_async { "202 first, if it takes long" } else { "at once" };
        let here = match endpoint {
            _ if facts.served => "yes",
            Endpoint::Review | Endpoint::ReviewBoard => "403: there is no two-step verification",
            _ => "501: not built",
        };
        line(
            &mut page,
            format_args!("| {} | `{}` | {answers} | {} | {here} |", facts.method, facts.name, facts.role.name()),
        );
    }
    page.push_str("\n## Parameters of all endpoints\n\n");
    table(&mut page, &Presentation::parameters());
    for endpoint in Endpoint::ALL.into_iter().filter(|endpoint| endpoint.facts().served) {
        line(&mut page, format_args!("\n## `{} {}`\n", endpoint.method(), endpoint.name()));
        table(&mut page, &Request::parameters(endpoint));
    }
    page
}

const INTRODUCTION: &str = "# REST API

<!-- Generated from crates/rest: `cargo xtask generate`. Do not edit. -->

The API is Cruise Control's, below `/kafkacruisecontrol/`. Names of endpoints and parameters are accepted in any case; an
unknown parameter is refused. Lists are separated by commas; of flags only `true` is true. Parameters of a POST may also
come as a form. What differs from the original is in [compatibility.md](compatibility.md).
";

fn table(page: &mut String, parameters: &[Parameter]) {
    page.push_str("| parameter | value | default | what it is for |\n|---|---|---|---|\n");
    for Parameter { name, kind, default, help } in parameters {
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        line(page, format_args!("| `{name}` | {kind} | {default} | {help} |"));
    }
}

fn line(page: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(page, "{text}").expect("text can be written to a string");
}
