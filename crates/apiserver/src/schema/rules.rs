//! Running the CEL rules of a schema on an object.

use std::cell::Cell;
use std::sync::Arc;

use kube_cel::cel::objects::Value as Cel;
use serde_json::Value;

use crate::refusal::{Fault, FieldError, Findings};
use crate::schema::cel::{self, Decl, Estimate, Expression, Items, values};
use crate::schema::path::Path;
use crate::schema::validate::type_names;
use crate::schema::{Rule, Schema, Type, correlate, fieldpath};

/// What all rules together may cost on one object, in steps of the interpreter: about a second. Its steps are smaller than
/// the original's, which affords the longest lists of our own definitions with half as many.
const BUDGET: u64 = 20_000_000;

/// What one rule may cost on one value, in steps of the original.
const CALL_LIMIT: u64 = 1_000_000;

/// Rules that can never cost more than this are not measured before they run; measuring would cost more.
const CHEAP: u64 = 500;

/// Longest text that a `messageExpression` may yield.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

/// The rules of one node, ready to run.
pub(crate) struct NodeRules {
    /// The type of `self`.
    pub(crate) scope: Arc<Decl>,
    pub(crate) rules: Vec<CompiledRule>,
}

/// One rule, ready to run.
pub(crate) struct CompiledRule {
    /// `None`: it does not parse, and is refused when the CRD is admitted. Why is worded there, if it is told at all.
    pub(crate) expression: Option<Expression>,
    pub(crate) message: Option<Option<Expression>>,
    /// `fieldPath` as errors write it.
    field_path: String,
    /// The most that running the rule can cost, whatever the object.
    worst: u64,
}

/// Compiles the rules of a schema and of everything below it.
pub(crate) fn compile(schema: &mut Schema, is_resource: bool) {
    let mut within = !schema.rules.is_empty();
    for child in schema.properties.values_mut().chain(&mut schema.additional).chain(&mut schema.items) {
        let child = Arc::make_mut(child);
        compile(child, child.embedded_resource);
        within |= child.compiled.rules_within;
    }
    schema.compiled.rules_within = within;
    if schema.rules.is_empty() {
        return;
    }
    if let Some(scope) = Decl::of_schema(schema, is_resource) {
        let rules = schema.rules.iter().map(|rule| compile_rule(schema, &scope, rule)).collect();
        schema.compiled.rules = Some(Arc::new(NodeRules { scope, rules }));
    }
}

fn compile_rule(schema: &Schema, scope: &Arc<Decl>, rule: &Rule) -> CompiledRule {
    let settled = |source: &str| {
        let mut expression = Expression::parse(source).ok()?;
        let worst = expression.settle(scope, rule.optional_old_self, BUDGET);
        Some((expression, worst))
    };
    let (expression, worst) = settled(&rule.rule).unzip();
    let path = rule.field_path.as_deref().and_then(|path| fieldpath::resolve_path(schema, path, true).ok());
    CompiledRule {
        expression,
        message: rule.message_expression.as_deref().map(|message| settled(message).map(|(message, _)| message)),
        field_path: path.map(|(_, written)| written).unwrap_or_default(),
        worst: worst.unwrap_or_default(),
    }
}

/// Runs all rules on a value that stands at `prefix`. Transition rules run where there is an old value to compare
/// with. Of rules without `oldSelf`, faults of unchanged values are forgiven.
pub(crate) fn evaluate(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    prefix: &str,
    ratchet: bool,
) -> Vec<FieldError> {
    let mut run = Run { budget: BUDGET, ratchet, errors: Findings::default() };
    let known = Cell::new(None);
    let forgives = ratchet.then_some(Forgiving { schema, value, old, known: &known });
    // Running out of budget or of room for faults ends the walk; the error for the first is already among the others.
    _ = run.node(schema, prefix.is_empty(), value, old, forgives, &Path::root(prefix));
    run.errors.into_told()
}

/// The nearest value with a past: if it is what it was, faults in it are forgiven.
#[derive(Clone, Copy)]
struct Forgiving<'a> {
    schema: &'a Schema,
    value: &'a Value,
    old: Option<&'a Value>,
    /// Whether it does, once somebody has asked: all items of a long list ask the same.
    known: &'a Cell<Option<bool>>,
}

impl Forgiving<'_> {
    fn forgives(self) -> bool {
        let look = || self.old.is_some_and(|old| correlate::unchanged(self.schema, self.value, old));
        let forgives = self.known.get().unwrap_or_else(look);
        self.known.set(Some(forgives));
        forgives
    }
}

/// The budget is used up, or as many faults were found as are told.
struct Exhausted;

struct Run {
    budget: u64,
    ratchet: bool,
    errors: Findings<FieldError>,
}

impl Run {
    fn node<'a>(
        &mut self,
        schema: &'a Schema,
        is_root: bool,
        value: &'a Value,
        old: Option<&'a Value>,
        forgiving: Option<Forgiving<'a>>,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        if !schema.compiled.rules_within || value.is_null() {
            return Ok(());
        }
        let old = old.filter(|old| !old.is_null());
        self.rules(schema, is_root || schema.embedded_resource, value, old, forgiving, path)?;
        // A child with a past is forgiven by itself, one without by the nearest value that has one.
        let ratchet = self.ratchet;
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    let named = schema.properties.get(name);
                    let Some(child) = named.or(schema.additional.as_ref()) else { continue };
                    let (old, known) = (correlate::field(old, name), Cell::new(None));
                    let own = Forgiving { schema: child, value, old, known: &known };
                    let forgiving = if ratchet && old.is_some() { Some(own) } else { forgiving };
                    let path = if named.is_some() { path.field(name) } else { path.key(name) };
                    self.node(child, false, value, old, forgiving, &path)?;
                }
            }
            Value::Array(items) => {
                let Some(child) = schema.items.as_ref().filter(|child| child.compiled.rules_within) else {
                    return Ok(());
                };
                let old_items = correlate::OldItems::new(schema, old);
                for (index, item) in items.iter().enumerate() {
                    let (old, known) = (old_items.get(item), Cell::new(None));
                    let own = Forgiving { schema: child, value: item, old, known: &known };
                    let forgiving = if ratchet && old.is_some() { Some(own) } else { forgiving };
                    self.node(child, false, item, old, forgiving, &path.index(index))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Pays for something before it is done.
    fn pay(&mut self, cost: u64, schema: &Schema, path: &Path<'_>) -> Result<(), Exhausted> {
        if let Some(rest) = self.budget.checked_sub(cost) {
            self.budget = rest;
            return Ok(());
        }
        let detail = "validation failed due to running out of cost budget, no further validation rules will be run";
        let ty = Value::from(type_name(schema.ty));
        self.errors.tell(|| FieldError::with_value(path.bracketed(), Fault::Invalid, &ty, detail));
        Err(Exhausted)
    }

    /// Pays for a rule before it runs, by the sizes of what it runs on, and for finding out how much that is.
    fn pay_measured(
        &mut self,
        schema: &Schema,
        rule: &Rule,
        expression: &Expression,
        sizes: &Arc<Decl>,
        read: &Read<'_>,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        let Estimate { cost, effort, .. } = expression.running_cost(sizes, rule.optional_old_self, self.budget);
        // Once for what it costs here, once for what it costs the original.
        self.pay(effort.saturating_mul(2), schema, path)?;
        let steps = |sizes: &Arc<Decl>| expression.estimate(sizes, rule.optional_old_self).cost;
        if steps(sizes) > CALL_LIMIT {
            // The original counts its steps while it takes them, and stops at a limit. One long item among many makes no
            // difference to that, so it is the mean item that counts here.
            self.pay(read.size.saturating_add(effort), schema, path)?;
            if steps(&read.measured(Items::Mean)) > CALL_LIMIT {
                let detail = format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to \
                     call cost exceeds limit for rule: {}",
                    shown(rule)
                );
                let ty = Value::from(type_name(schema.ty));
                self.errors.tell(|| FieldError::with_value(path.bracketed(), Fault::Invalid, &ty, detail));
                return Err(Exhausted);
            }
        }
        self.pay(cost, schema, path)
    }

    fn rules(
        &mut self,
        schema: &Schema,
        is_resource: bool,
        value: &Value,
        old: Option<&Value>,
        forgiving: Option<Forgiving<'_>>,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        let Some(node) = &schema.compiled.rules else { return Ok(()) };
        if self.errors.is_full() {
            return Err(Exhausted);
        }
        // Rules of a value and of what is around it all have it read for themselves: once as values, once for its sizes.
        let read = Read { scope: &node.scope, value, old, size: nodes(value) + old.map_or(0, nodes) };
        self.pay(read.size.saturating_mul(2), schema, path)?;
        // Made for the first rule that needs them.
        let (mut scope, mut measured) = (None, None);
        let current = values::convert(schema, is_resource, value);
        let previous = old.map(|old| values::convert(schema, is_resource, old));
        for (rule, compiled) in schema.rules.iter().zip(&node.rules) {
            let Some(expression) = &compiled.expression else { continue };
            if expression.uses_old && old.is_none() && !rule.optional_old_self {
                continue;
            }
            if compiled.worst > CHEAP {
                let sizes = measured.get_or_insert_with(|| read.measured(Items::Largest));
                self.pay_measured(schema, rule, expression, sizes, &read, path)?;
            } else {
                self.pay(compiled.worst, schema, path)?;
            }
            let scope = match &scope {
                Some((optional, scope)) if *optional == rule.optional_old_self => scope,
                _ => {
                    let made = cel::scope(current.clone(), previous.clone(), rule.optional_old_self);
                    &scope.insert((rule.optional_old_self, made)).1
                }
            };
            match expression.run(scope) {
                Ok(Cel::Bool(true)) => continue,
                Ok(_) => {}
                Err(why) => {
                    self.errors.tell(|| broken(schema, rule, &why, path));
                    continue;
                }
            }
            let message = compiled.message.as_ref().and_then(Option::as_ref).and_then(|message| {
                let sizes = measured.get_or_insert_with(|| read.measured(Items::Largest));
                let Estimate { cost, effort, .. } = message.running_cost(sizes, rule.optional_old_self, self.budget);
                self.budget = self.budget.checked_sub(cost.saturating_add(effort))?;
                computed_message(message, scope)
            });
            if expression.uses_old || !forgiving.is_some_and(Forgiving::forgives) {
                self.errors.tell(|| failed(schema, rule, compiled, value, message, path));
            }
        }
        Ok(())
    }
}

/// What the rules of one value read.
struct Read<'a> {
    scope: &'a Arc<Decl>,
    value: &'a Value,
    old: Option<&'a Value>,
    /// How many values that are.
    size: u64,
}

impl Read<'_> {
    fn measured(&self, items: Items) -> Arc<Decl> {
        let now = self.scope.measured(self.value, items);
        match self.old {
            Some(old) => now.larger(&self.scope.measured(old, items)),
            None => now,
        }
    }
}

/// How many values there are in one, itself among them.
fn nodes(value: &Value) -> u64 {
    let within: u64 = match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(map) => map.values().map(nodes).sum(),
        _ => 0,
    };
    within + 1
}

/// The one type of what is told; what may be of several has none.
fn type_name(ty: Type) -> &'static str {
    if ty == Type::IntOrString { "" } else { type_names(ty) }
}

/// What is said of a rule that came to no result.
fn shown(rule: &Rule) -> &str {
    rule.message.as_deref().unwrap_or(&rule.rule).trim()
}

/// The rule could not be decided.
fn broken(schema: &Schema, rule: &Rule, why: &str, path: &Path<'_>) -> FieldError {
    let shown = shown(rule);
    let detail = if why.starts_with("no such overload") {
        format!(
            "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {shown}"
        )
    } else {
        format!("{why} evaluating rule: {shown}")
    };
    FieldError::with_value(path.bracketed(), Fault::Invalid, &type_name(schema.ty).into(), detail)
}

/// What a `messageExpression` says; `None` where it says nothing that can be shown.
fn computed_message(message: &Expression, scope: &kube_cel::cel::Context<'_>) -> Option<String> {
    let Ok(Cel::String(text)) = message.run(scope) else { return None };
    let text = text.trim();
    let usable = !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
    usable.then(|| text.to_owned())
}

/// The rule says no.
fn failed(
    schema: &Schema,
    rule: &Rule,
    compiled: &CompiledRule,
    value: &Value,
    message: Option<String>,
    path: &Path<'_>,
) -> FieldError {
    let detail = message.unwrap_or_else(|| match &rule.message {
        Some(message) => message.trim().to_owned(),
        None => format!("failed rule: {}", rule.rule.trim()),
    });
    let at = match (path.bracketed(), compiled.field_path.as_str()) {
        (at, "") => at,
        (at, field) if at.is_empty() => field.to_owned(),
        (at, field) => format!("{at}.{field}"),
    };
    let fault = match rule.reason.as_deref() {
        Some("FieldValueForbidden") => Fault::Forbidden,
        Some("FieldValueRequired") => Fault::Required,
        Some("FieldValueDuplicate") => Fault::Duplicate,
        _ => Fault::Invalid,
    };
    let detail = if fault == Fault::Duplicate { String::new() } else { detail };
    let mut error = FieldError::new(at, fault, detail);
    if !matches!(schema.ty, Type::Object | Type::Array) {
        error.value = value.to_string();
    }
    error
}
