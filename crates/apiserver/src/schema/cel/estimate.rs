//! One walk over an expression that tells its type and its worst cost.

use std::sync::Arc;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};

use super::cost_of_calls::{self, scaled};
use super::decl::{Decl, Kind};
use super::facts::{Facts, Range, declared, literal_facts, made, resized, sized, sum, var};
use super::operands::{arithmetic, comparable, compare_cost, equality_cost, fits_beside, ordered};
use super::{locate, signatures};
use crate::schema::pattern;

/// What is known about a whole expression.
pub(crate) struct Estimate {
    /// Its type.
    pub(crate) kind: Kind,
    /// Worst cost.
    pub(crate) cost: u64,
    /// What the original's compiler would say against it.
    pub(crate) errors: Vec<String>,
}

impl Estimate {
    pub(super) fn of(source: &str, tree: &IdedExpr, scope: &Arc<Decl>, old_is_optional: bool, copies: bool) -> Self {
        let old = if old_is_optional { Decl::containing(Kind::Optional, scope.clone(), 1) } else { scope.clone() };
        let vars = vec![var("self", scope.clone()), var("oldSelf", old)];
        let mut walk = Walk { source, vars, copies, formats: 0, errors: Vec::new() };
        let facts = walk.visit(tree);
        Self { kind: facts.ty.kind, cost: facts.cost, errors: walk.errors }
    }
}

struct Walk<'a> {
    source: &'a str,
    vars: Vec<(String, Facts)>,
    /// Count what our interpreter copies where the original's only points: running costs instead of admission costs.
    copies: bool,
    /// How many formats are around what is looked at: in those, lists may hold anything.
    formats: usize,
    errors: Vec<String>,
}

impl Walk<'_> {
    fn visit(&mut self, node: &IdedExpr) -> Facts {
        match &node.expr {
            Expr::Literal(literal) => literal_facts(literal),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                let operand = self.visit(&select.operand);
                let told = self.errors.len();
                let field = self.field(&operand, &select.field);
                if select.test {
                    // A macro's errors are told at the macro.
                    if self.errors.len() > told {
                        self.errors.truncate(told);
                        let message = format!("undefined field '{}'", select.field);
                        self.error(locate::of_call(self.source, "has"), &message);
                    }
                    return made(Kind::Bool, None, operand.cost.saturating_add(1));
                }
                let selects = matches!(operand.ty.kind, Kind::Map | Kind::Object);
                let cost = operand.cost.saturating_add(u64::from(selects));
                let copied = self.copied(&field);
                Facts { cost: cost.saturating_add(copied), ..field }
            }
            Expr::Call(call) => {
                self.must_be_readable(node, call);
                self.call(call)
            }
            Expr::List(list) => {
                let (mut cost, mut element) = (10_u64, None);
                for (index, node) in list.elements.iter().enumerate() {
                    let item = self.visit(node);
                    cost = cost.saturating_add(item.cost);
                    let ty = match (list.optional_indices.contains(&index), &item.ty.element) {
                        (true, Some(inner)) => inner.clone(),
                        _ => sized(&item),
                    };
                    element = Some(self.joined(element, node, ty));
                }
                let element = element.unwrap_or_else(|| Decl::of_kind(Kind::Dyn));
                let size = Range::exactly(list.elements.len());
                Facts { ty: Decl::containing(Kind::List, element, size.max), size, cost }
            }
            Expr::Map(map) => {
                let (mut cost, mut keys, mut values) = (30_u64, None, None);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        let (key, value) = (self.visit(&entry.key), self.visit(&entry.value));
                        cost = cost.saturating_add(key.cost).saturating_add(value.cost);
                        keys = Some(self.joined(keys, &entry.key, key.ty.clone()));
                        let ty = match (entry.optional, &value.ty.element) {
                            (true, Some(inner)) => inner.clone(),
                            _ => sized(&value),
                        };
                        values = Some(self.joined(values, &entry.value, ty));
                    }
                }
                let size = Range::exactly(map.entries.len());
                let element = values.unwrap_or_else(|| Decl::of_kind(Kind::Dyn));
                Facts { ty: Decl::containing(Kind::Map, element, size.max), size, cost }
            }
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::Struct(message) => {
                // Nothing in Kubernetes can be made this way, and the interpreter cannot either.
                self.error(0, &format!("undeclared reference to '{}' (in container '')", message.type_name));
                made(Kind::Dyn, None, 40)
            }
            Expr::Unspecified => {
                self.error(0, "empty expression");
                made(Kind::Dyn, None, 0)
            }
        }
    }

    fn error(&mut self, offset: usize, message: &str) {
        self.errors.push(locate::located(self.source, offset, message));
    }

    fn copied(&self, facts: &Facts) -> u64 {
        if self.copies { facts.ty.deep_size() } else { 0 }
    }

    fn name(&mut self, name: &str) -> Facts {
        if let Some((_, facts)) = self.vars.iter().rev().find(|(known, _)| known == name) {
            return Facts { cost: 1, ..facts.clone() };
        }
        if !signatures::TYPE_NAMES.contains(&name) {
            let message = format!("undeclared reference to '{name}' (in container '')");
            self.error(locate::of_name(self.source, name), &message);
        }
        made(Kind::Dyn, Some(Range::ONE), 1)
    }

    /// A field of a value, by name.
    fn field(&mut self, operand: &Facts, name: &str) -> Facts {
        match operand.ty.kind {
            Kind::Object => match operand.ty.fields.get(name) {
                Some(field) => declared(field.clone(), 0),
                None => {
                    self.error(locate::of_field(self.source, name), &format!("undefined field '{name}'"));
                    made(Kind::Dyn, None, 0)
                }
            },
            Kind::Map => operand.ty.element.clone().map_or_else(|| made(Kind::Dyn, None, 0), |e| declared(e, 0)),
            Kind::Optional => match operand.ty.element.clone() {
                Some(inner) => {
                    let field = self.field(&declared(inner, 0), name);
                    declared(Decl::containing(Kind::Optional, field.ty, 1), 0)
                }
                None => made(Kind::Dyn, None, 0),
            },
            Kind::Dyn => made(Kind::Dyn, None, 0),
            _ => {
                let ty = signatures::written(&operand.ty);
                let message = format!("type '{ty}' does not support field selection");
                self.error(locate::of_field(self.source, name), &message);
                made(Kind::Dyn, None, 0)
            }
        }
    }

    fn call(&mut self, call: &CallExpr) -> Facts {
        // `math.greatest(...)`: the parser takes the first part for a value.
        let qualified = call.target.as_ref().and_then(|target| match &target.expr {
            Expr::Ident(space) => Some(format!("{space}.{}", call.func_name)),
            _ => None,
        });
        let qualified = qualified.filter(|name| signatures::of(name).is_some());
        let target = match (&qualified, &call.target) {
            (None, Some(target)) => Some(self.visit(target)),
            _ => None,
        };
        let is_format = usize::from(call.func_name == "format");
        self.formats += is_format;
        let args: Vec<Facts> = call.args.iter().map(|arg| self.visit(arg)).collect();
        self.formats -= is_format;
        let name = qualified.as_deref().unwrap_or(&call.func_name);
        let arguments = sum(&args).saturating_add(target.as_ref().map_or(0, |facts| facts.cost));
        if let Some(facts) = self.operator(name, call, &args) {
            return facts;
        }
        let Some(yields) = signatures::of(name) else {
            let message = format!("undeclared reference to '{name}' (in container '')");
            self.error(locate::of_call(self.source, &call.func_name), &message);
            return made(Kind::Dyn, None, arguments);
        };
        self.must_be_called_on(name, target.as_ref(), &args);
        let ty = signatures::result(yields, target.as_ref().map(|f| &f.ty), args.first().map(|f| &f.ty));
        let (cost, size) = cost_of_calls::of(name, target.as_ref(), &args);
        let copied: u64 = target.iter().chain(&args).map(|facts| self.copied(facts)).fold(0, u64::saturating_add);
        let cost = cost.saturating_add(arguments).saturating_add(copied);
        match (size, yields) {
            (Some(size), _) => Facts { ty: resized(&ty, size), size, cost },
            (None, signatures::Yields::Target | signatures::Yields::Item) => declared(ty, cost),
            (None, _) if ty.element.is_some() => declared(ty, cost),
            (None, _) => made(ty.kind, None, cost),
        }
    }

    /// Operators, which the parser turns into calls with odd names.
    fn operator(&mut self, name: &str, call: &CallExpr, args: &[Facts]) -> Option<Facts> {
        let cost = sum(args);
        Some(match (name, args) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [_, _]) => {
                for (arg, facts) in call.args.iter().zip(args) {
                    self.must_be_bool(arg, facts);
                }
                made(Kind::Bool, None, cost)
            }
            (operators::LOGICAL_NOT, [a]) => {
                self.must_match(name, args, matches!(a.ty.kind, Kind::Bool | Kind::Dyn));
                made(Kind::Bool, None, cost.saturating_add(1))
            }
            (operators::NOT_STRICTLY_FALSE, [_]) => made(Kind::Bool, None, cost.saturating_add(1)),
            (operators::CONDITIONAL, [condition, yes, no]) => {
                self.must_be_bool(&call.args[0], condition);
                let same = yes.ty.kind == no.ty.kind;
                let loose = |facts: &Facts| matches!(facts.ty.kind, Kind::Dyn | Kind::Null);
                self.must_match(name, args, same || loose(yes) || loose(no));
                let ty = if same { yes.ty.larger(&no.ty) } else { Decl::of_kind(Kind::Dyn) };
                let cost = condition.cost.saturating_add(yes.cost.max(no.cost));
                Facts { ty, size: yes.size.union(no.size), cost }
            }
            (operators::EQUALS | operators::NOT_EQUALS, [a, b]) => {
                self.must_match(name, args, comparable(a, b));
                let extra = if name == operators::EQUALS { equality_cost(a, b) } else { compare_cost(a, b) };
                made(Kind::Bool, None, cost.saturating_add(extra))
            }
            (operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS, [a, b]) => {
                self.must_match(name, args, ordered(a, b));
                let text = |facts: &Facts| matches!(facts.ty.kind, Kind::String | Kind::Bytes | Kind::Dyn);
                let extra = if text(a) && text(b) { compare_cost(a, b) } else { 1 };
                made(Kind::Bool, None, cost.saturating_add(extra))
            }
            (operators::ADD, [a, b]) => self.add(a, b, args),
            (operators::SUBSTRACT | operators::MULTIPLY | operators::DIVIDE | operators::MODULO, [a, b]) => {
                let kind = arithmetic(name, a.ty.kind, b.ty.kind);
                self.must_match(name, args, kind.is_some());
                made(kind.unwrap_or(Kind::Dyn), None, cost.saturating_add(1))
            }
            (operators::NEGATE, [a]) => made(a.ty.kind, None, cost.saturating_add(1)),
            (operators::IN, [_, list]) => {
                let walks = matches!(list.ty.kind, Kind::List | Kind::Dyn);
                made(Kind::Bool, None, cost.saturating_add(if walks { list.size.max } else { 1 }))
            }
            (operators::INDEX, [on, _]) => {
                let (item, in_optional) = indexed(on);
                let cost = cost.saturating_add(1).saturating_add(self.copied(&item));
                let facts = if in_optional { optional(item) } else { item };
                Facts { cost, ..facts }
            }
            (operators::OPT_INDEX, [on, _]) => {
                let field = match &call.args[1].expr {
                    Expr::Literal(LiteralValue::String(name)) => self.field(on, name.inner()),
                    _ => indexed(on).0,
                };
                let cost = cost.saturating_add(1).saturating_add(self.copied(&field));
                let facts = if field.ty.kind == Kind::Optional { declared(field.ty, 0) } else { optional(field) };
                Facts { cost, ..facts }
            }
            _ => return None,
        })
    }

    fn add(&mut self, a: &Facts, b: &Facts, args: &[Facts]) -> Facts {
        let cost = a.cost.saturating_add(b.cost);
        let size = Range { min: a.size.min.saturating_add(b.size.min), max: a.size.max.saturating_add(b.size.max) };
        let kind = match (a.ty.kind, b.ty.kind) {
            (Kind::Dyn, other) | (other, Kind::Dyn) => Some(other),
            (a, b) if a == b && matches!(a, Kind::String | Kind::Bytes | Kind::List) => Some(a),
            (a, b) => arithmetic(operators::ADD, a, b),
        };
        self.must_match(operators::ADD, args, kind.is_some());
        match kind.unwrap_or(Kind::Dyn) {
            Kind::List => {
                let ty = resized(&a.ty.larger(&b.ty), size);
                let copied = if self.copies { ty.deep_size() } else { 0 };
                Facts { ty, size, cost: cost.saturating_add(1).saturating_add(copied) }
            }
            kind @ (Kind::String | Kind::Bytes | Kind::Dyn) => {
                made(kind, Some(size), cost.saturating_add(scaled(size.max, 0.1)))
            }
            kind => made(kind, None, cost.saturating_add(1)),
        }
    }

    /// A text that can never be read as what it is given for is found when the rule is admitted.
    fn must_be_readable(&mut self, node: &IdedExpr, call: &CallExpr) {
        let name = call.func_name.as_str();
        let Some(Expr::Literal(LiteralValue::String(text))) = call.args.first().map(|argument| &argument.expr) else {
            return;
        };
        let unreadable = match (name, &call.target) {
            // When it runs it has been admitted.
            _ if self.copies => false,
            ("matches", Some(_)) => pattern::compile(text.inner()).is_err(),
            ("duration" | "timestamp", None) => super::run_alone(node).is_err(),
            _ => false,
        };
        if unreadable {
            let offset = locate::of_call(self.source, name) + 1;
            self.error(offset, &format!("invalid {name} argument"));
        }
    }

    /// The type of what is listed so far and of one more of it. What is written out must be of one type.
    fn joined(&mut self, before: Option<Arc<Decl>>, node: &IdedExpr, now: Arc<Decl>) -> Arc<Decl> {
        match before {
            None => now,
            Some(before) if before.kind == Kind::Dyn || now.kind == Kind::Dyn => Decl::of_kind(Kind::Dyn),
            Some(before) if fits_beside(&before, &now) => before.larger(&now),
            Some(before) => {
                if self.formats == 0 {
                    self.expected(&signatures::written(&before), node, &now);
                }
                Decl::of_kind(Kind::Dyn)
            }
        }
    }

    fn expected(&mut self, wanted: &str, node: &IdedExpr, found: &Decl) {
        // When it runs it has been admitted.
        if self.copies {
            return;
        }
        let offset = match &node.expr {
            Expr::Select(select) => locate::of_field(self.source, &select.field),
            Expr::Ident(name) => locate::of_name(self.source, name),
            Expr::Call(call) => locate::of_call(self.source, &call.func_name),
            Expr::Literal(LiteralValue::String(text)) => locate::of_text(self.source, text.inner()),
            _ => 0,
        };
        let message = format!("expected type '{wanted}' but found '{}'", signatures::written(found));
        self.error(offset, &message);
    }

    fn must_be_bool(&mut self, node: &IdedExpr, facts: &Facts) {
        if !matches!(facts.ty.kind, Kind::Bool | Kind::Dyn) {
            self.expected("bool", node, &facts.ty);
        }
    }

    fn must_be_called_on(&mut self, name: &str, target: Option<&Facts>, args: &[Facts]) {
        let Some(target) = target.filter(|facts| facts.ty.kind != Kind::Dyn) else { return };
        if signatures::called_on(name).is_some_and(|kinds| !kinds.contains(&target.ty.kind)) {
            let types: Vec<String> = args.iter().map(|facts| signatures::written(&facts.ty)).collect();
            let applied = format!("{}.({})", signatures::written(&target.ty), types.join(", "));
            let message = format!("found no matching overload for '{name}' applied to '{applied}'");
            self.error(locate::of_call(self.source, name), &message);
        }
    }

    fn must_match(&mut self, operator: &str, args: &[Facts], matches: bool) {
        if !matches {
            let types: Vec<String> = args.iter().map(|facts| signatures::written(&facts.ty)).collect();
            let types = types.join(", ");
            let message = format!("found no matching overload for '{operator}' applied to '({types})'");
            self.error(locate::of_operator(self.source, operator), &message);
        }
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Facts {
        let range = self.visit(&loops.iter_range);
        let init = self.visit(&loops.accu_init);
        let item = match (range.ty.kind, &range.ty.element) {
            // Iterating over a map gives its keys.
            (Kind::Map, _) => made(Kind::String, Some(Range { min: 0, max: 0 }), 0),
            (Kind::List, Some(element)) => declared(element.clone(), 0),
            (Kind::List | Kind::Dyn, _) => made(Kind::Dyn, None, 0),
            _ => {
                let ty = signatures::written(&range.ty);
                let message = format!(
                    "expression of type '{ty}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.error(0, &message);
                made(Kind::Dyn, None, 0)
            }
        };
        let mut per_item = self.copied(&item);
        // A list that grows by one each time is, while it grows, as long as what is iterated over.
        let collects = matches!(loops.accu_init.expr, Expr::List(_));
        let accumulated = if collects { resized(&init.ty, range.size) } else { init.ty.clone() };
        self.vars.push((loops.accu_var.clone(), declared(accumulated, 1)));
        self.vars.push((loops.iter_var.clone(), item));
        let condition = self.visit(&loops.loop_cond);
        let step = self.visit(&loops.loop_step);
        self.vars.pop();
        self.vars.pop();
        let after = if collects { resized(&step.ty, range.size) } else { init.ty.clone() };
        if self.copies {
            per_item = per_item.saturating_add(after.deep_size().saturating_mul(2));
        }
        self.vars.push((loops.accu_var.clone(), declared(after, 1)));
        let result = self.visit(&loops.result);
        self.vars.pop();
        let per_item = per_item.saturating_add(condition.cost).saturating_add(step.cost);
        let cost = range.cost.saturating_add(init.cost).saturating_add(result.cost);
        let cost = cost.saturating_add(range.size.max.saturating_mul(per_item));
        let size = match range.size.max {
            _ if collects => Range { min: 0, max: range.size.max },
            // A loop over nothing only names a value.
            0 => result.size,
            _ => Range::ONE,
        };
        Facts { ty: result.ty, size, cost }
    }
}

/// An item of a list or a map, and whether that was in an optional: then so is the item.
fn indexed(on: &Facts) -> (Facts, bool) {
    let in_optional = on.ty.kind == Kind::Optional;
    let holder = if in_optional { on.ty.element.as_ref() } else { Some(&on.ty) };
    let item = holder.and_then(|holder| holder.element.clone());
    (item.map_or_else(|| made(Kind::Dyn, None, 0), |item| declared(item, 0)), in_optional)
}

fn optional(item: Facts) -> Facts {
    declared(Decl::containing(Kind::Optional, item.ty, 1), 0)
}

#[cfg(test)]
mod tests {
    use kube_cel::cel::objects::Value;
    use serde_json::json;

    use super::*;
    use crate::schema::Schema;
    use crate::schema::cel::{Expression, scope, values};

    #[test]
    fn an_item_of_what_is_in_an_optional_is_in_one_too() {
        let text = json!({"type": "string", "maxLength": 20});
        let schema = json!({"type": "object", "properties": {
            "s": text, "map": {"type": "object", "maxProperties": 5, "additionalProperties": text},
            "list": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
        }});
        let schema = Schema::parse(&schema, "").expect("a schema");
        let scope_of_rules = Decl::of_schema(&schema, false).expect("a type");
        let value = values::convert(&schema, false, &json!({"s": "b", "map": {"b": "ab"}}));
        for rule in [
            "self.?map['a'].orValue('x') == 'x'",
            "self.?list[?0].orValue(1) == 1",
            "self.?list[0].orValue(1) + 1 == 2",
            "self.?map[?self.s].orValue('').startsWith('a')",
        ] {
            let parsed = Expression::parse(rule).expect("an expression");
            let estimate = parsed.estimate(&scope_of_rules, false);
            assert_eq!(estimate.errors, Vec::<String>::new(), "{rule}");
            assert!(estimate.kind == Kind::Bool, "{rule}");
            assert_eq!(parsed.run(&scope(value.clone(), None, false)), Ok(Value::Bool(true)), "{rule}");
        }
    }
}
