//! Whether the CEL rules of a CRD make sense, and whether they can be afforded on the largest object that fits a
//! request. This is what keeps hostile rules out: once admitted, a rule runs on every write.

use crate::refusal::{Fault, FieldError, Findings};
use crate::schema::cel::{Estimate, Expression, Kind};
use crate::schema::rules::CompiledRule;
use crate::schema::{ListKind, Rule, Schema, Type, fieldpath};

/// The most that one expression may cost.
const EXPRESSION_LIMIT: u64 = 10_000_000;
/// The most that all expressions of a schema may cost together.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// How many expressions are blamed when the sum is too much.
const MOST_BLAMED: usize = 4;

/// Everything wrong with the rules of a schema, whose parts have been found sound otherwise.
pub(crate) fn violations(schema: &Schema, path: &str) -> Vec<FieldError> {
    let mut admission = Admission::default();
    admission.node(schema, path, Some(1), None);
    let Admission { mut errors, total, mut expensive, .. } = admission;
    if total > SCHEMA_LIMIT {
        expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        for (path, _) in expensive.into_iter().take(MOST_BLAMED) {
            let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.tell(|| FieldError::new(path, Fault::Forbidden, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.tell(|| FieldError::new(path, Fault::Forbidden, too_costly(what, total, SCHEMA_LIMIT)));
    }
    errors.into_told()
}

#[derive(Default)]
struct Admission {
    errors: Findings<FieldError>,
    total: u64,
    /// Expressions that are worth blaming, with their cost.
    expensive: Vec<(String, u64)>,
}

impl Admission {
    /// `times`: how often the node can occur in an object, where every list and map around it is bounded.
    /// `uncorrelated`: the nearest list around it whose items have no past.
    fn node(&mut self, schema: &Schema, path: &str, times: Option<u64>, uncorrelated: Option<&str>) {
        if self.errors.is_full() {
            return;
        }
        let below = |max: Option<u64>| times.zip(max).map(|(times, max)| times.saturating_mul(max));
        if let Some(values) = &schema.additional {
            let times = below(schema.checks.max_properties);
            self.node(values, &format!("{path}.additionalProperties"), times, uncorrelated);
        }
        for (name, property) in &schema.properties {
            self.node(property, &format!("{path}.properties[{name}]"), times, uncorrelated);
        }
        if let Some(items) = &schema.items {
            let keyed = matches!(schema.list, ListKind::Map(_));
            let uncorrelated = uncorrelated.or((!keyed).then_some(path));
            self.node(items, &format!("{path}.items"), below(schema.checks.max_items), uncorrelated);
        }
        let Some(node) = &schema.compiled.rules else {
            if !schema.rules.is_empty() && schema.ty == Type::Any {
                let detail = "internal error: failed to retrieve type information for x-kubernetes-validations";
                let at = format!("{path}.x-kubernetes-validations");
                self.errors.tell(|| FieldError::new(at, Fault::Internal, detail));
            }
            return;
        };
        // Where nothing else bounds it, the size of a request does.
        let times = times.unwrap_or(crate::schema::cel::decl::MAX_REQUEST_BYTES / (node.scope.min_bytes + 1));
        for (index, (rule, compiled)) in schema.rules.iter().zip(&node.rules).enumerate() {
            let at = format!("{path}.x-kubernetes-validations[{index}]");
            if let Some(field) = &rule.field_path
                && fieldpath::resolve_path(schema, field, true).is_err()
            {
                let at = format!("{at}.fieldPath");
                let value = field.as_str().into();
                self.errors.tell(|| FieldError::with_value(at, Fault::Invalid, &value, "must be a valid path"));
            }
            self.rule(rule, compiled, node, &at, times, uncorrelated);
        }
    }

    fn rule(
        &mut self,
        rule: &Rule,
        compiled: &CompiledRule,
        node: &crate::schema::rules::NodeRules,
        at: &str,
        times: u64,
        uncorrelated: Option<&str>,
    ) {
        let estimate = |expression: &Expression| expression.estimate(&node.scope, rule.optional_old_self);
        let at_rule = format!("{at}.rule");
        let Some(expression) = &compiled.expression else {
            return self.refuse(at_rule, rule, || format!("compilation failed: {}", why(&rule.rule)));
        };
        let found = estimate(expression);
        if let Some(problem) = problem(&found, Kind::Bool) {
            return self.refuse(at_rule, rule, || match problem {
                Problem::Types => format!("compilation failed: {}", found.errors),
                Problem::Result => "cel expression must evaluate to a bool".into(),
            });
        }
        self.charge(at_rule.clone(), "estimated rule cost", found.cost.saturating_mul(times));
        let at_message = format!("{at}.messageExpression");
        match (&rule.message_expression, &compiled.message) {
            (Some(source), Some(None)) => {
                self.refuse(at_message, rule, || format!("messageExpression compilation failed: {}", why(source)));
            }
            (_, Some(Some(message))) => {
                let found = estimate(message);
                match problem(&found, Kind::String) {
                    Some(problem) => self.refuse(at_message, rule, || match problem {
                        Problem::Types => format!("messageExpression compilation failed: {}", found.errors),
                        Problem::Result => "messageExpression must evaluate to a string".into(),
                    }),
                    None => self.charge(at_message, "estimated messageExpression cost", found.cost),
                }
            }
            _ => {}
        }
        if expression.uses_old {
            if let Some(list) = uncorrelated {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
                let value = rule.rule.as_str().into();
                self.errors.tell(|| FieldError::with_value(at_rule, Fault::Invalid, &value, detail));
            }
        } else if rule.optional_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            let at = format!("{at}.optionalOldSelf");
            self.errors.tell(|| FieldError::with_value(at, Fault::Invalid, &true.into(), detail));
        }
    }

    fn charge(&mut self, at: String, what: &str, cost: u64) {
        if cost > EXPRESSION_LIMIT {
            self.errors.tell(|| FieldError::new(&at, Fault::Forbidden, too_costly(what, cost, EXPRESSION_LIMIT)));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_LIMIT / 100 {
            self.expensive.push((at, cost));
        }
    }

    fn refuse(&mut self, at: String, rule: &Rule, detail: impl FnOnce() -> String) {
        self.errors.tell(|| FieldError { value: shown(rule), ..FieldError::new(at, Fault::Invalid, detail()) });
    }
}

/// Why an expression does not parse.
fn why(source: &str) -> String {
    Expression::parse(source).err().unwrap_or_default()
}

enum Problem {
    Types,
    Result,
}

fn problem(estimate: &Estimate, wanted: Kind) -> Option<Problem> {
    if !estimate.errors.is_empty() {
        return Some(Problem::Types);
    }
    (estimate.kind != wanted && estimate.kind != Kind::Dyn).then_some(Problem::Result)
}

/// A rule as the original's messages show it.
fn shown(rule: &Rule) -> String {
    let text = |text: &str| {
        let json = serde_json::Value::from(text).to_string();
        json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
    };
    let field = |field: &Option<String>| text(field.as_deref().unwrap_or_default());
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text(&rule.rule),
        field(&rule.message),
        field(&rule.message_expression),
        rule.reason.as_deref().map_or_else(|| "null".into(), text),
        field(&rule.field_path),
        if rule.optional_old_self { "true" } else { "null" },
    )
}

fn too_costly(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
