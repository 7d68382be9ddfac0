//! One walk over an expression that tells its type and its worst cost.

mod checks;
mod operations;

use std::sync::Arc;

use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue};

use super::cost_of_calls::{self, scaled};
use super::decl::{Decl, Kind};
use super::facts::{Facts, Range, declared, literal_facts, made, resized, sized, sum, var};
use super::numbers::Replacements;
use super::{Complaints, Expression, locate, numbers, signatures};
use crate::schema::pattern;

/// What is known about a whole expression.
pub(crate) struct Estimate {
    /// Its type.
    pub(crate) kind: Kind,
    /// Worst cost.
    pub(crate) cost: u64,
    /// How many steps it took to find that out.
    pub(crate) effort: u64,
    /// What the original's compiler would say against it.
    pub(crate) errors: Complaints,
    /// Which of its calls are left to functions of ours.
    pub(super) replacements: Replacements,
}

impl Estimate {
    /// Types, and what the original takes the cost to be.
    pub(super) fn of(expression: &Expression, scope: &Arc<Decl>, old_is_optional: bool) -> Self {
        let mut walk = Walk::new(expression, scope, old_is_optional);
        if let Some(offset) = expression.unknown_macro {
            walk.error(|_| offset, &format!("undeclared reference to '{UNKNOWN_MACRO}' (in container '')"));
        }
        walk.finish(expression)
    }

    /// What it costs us to run it. After more steps than there is `room` for nobody looks any further: then it costs
    /// more than anybody has.
    pub(super) fn of_running(expression: &Expression, scope: &Arc<Decl>, old_is_optional: bool, room: u64) -> Self {
        Walk { running: true, room, ..Walk::new(expression, scope, old_is_optional) }.finish(expression)
    }
}

/// What it takes to read the rules of a time zone.
const ZONE: u64 = 256;

/// What each piece costs that a text is cut into.
const PIECE: u64 = 2;

/// How many characters of a format stand for one of its values at most, or for 64 bytes of it: quoted, or as digits.
const WRITTEN: u64 = 1024;

/// A macro that the parser expands though the original has none of that name.
const UNKNOWN_MACRO: &str = "existsOne";

/// Where that macro is called, if it is.
pub(super) fn unknown_macro(source: &str) -> Option<usize> {
    Some(locate::of_call(source, UNKNOWN_MACRO)).filter(|offset| *offset > 0)
}

struct Walk<'a> {
    source: &'a str,
    vars: Vec<(String, Facts)>,
    /// Count what our interpreter does where the original's does nothing, such as copying: running costs instead of
    /// admission costs.
    running: bool,
    /// How large the largest pattern is once it is compiled.
    pattern: usize,
    /// How many steps the walk may take.
    room: u64,
    /// How many it has taken.
    effort: u64,
    /// How many formats are around what is looked at: in those, lists may hold anything.
    formats: usize,
    /// What kinds of values are in the list that was looked at last.
    listed: Vec<Kind>,
    errors: Complaints,
    replacements: Replacements,
}

impl<'a> Walk<'a> {
    fn new(expression: &'a Expression, scope: &Arc<Decl>, old_is_optional: bool) -> Self {
        let old = if old_is_optional { Decl::containing(Kind::Optional, scope.clone(), 1) } else { scope.clone() };
        let vars = vec![var("self", scope.clone()), var("oldSelf", old)];
        let (source, pattern) = (expression.source.as_str(), expression.pattern);
        Self {
            source,
            vars,
            running: false,
            pattern,
            room: u64::MAX,
            effort: 0,
            formats: 0,
            listed: Vec::new(),
            errors: Complaints::default(),
            replacements: Replacements::new(),
        }
    }

    fn finish(mut self, expression: &Expression) -> Estimate {
        let facts = self.visit(&expression.tree);
        let cost = if self.effort > self.room { u64::MAX } else { facts.cost };
        let Self { effort, errors, replacements, .. } = self;
        Estimate { kind: facts.ty.kind, cost, effort, errors, replacements }
    }

    fn visit(&mut self, node: &IdedExpr) -> Facts {
        self.effort = self.effort.saturating_add(1);
        if self.effort > self.room {
            return made(Kind::Dyn, Some(Range::ONE), u64::MAX);
        }
        match &node.expr {
            Expr::Literal(literal) => {
                let facts = literal_facts(literal);
                // The original has it at hand, our interpreter makes it anew.
                Facts { cost: self.copied(&facts), ..facts }
            }
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => {
                let operand = self.visit(&select.operand);
                if select.test {
                    // A macro's errors are told at the macro.
                    if selected(&operand, &select.field).is_err() {
                        let message = format!("undefined field '{}'", select.field);
                        self.error(|source| locate::of_call(source, "has"), &message);
                    }
                    return made(Kind::Bool, None, operand.cost.saturating_add(1));
                }
                let field = self.field(&operand, &select.field);
                let selects = matches!(operand.ty.kind, Kind::Map | Kind::Object);
                let cost = operand.cost.saturating_add(u64::from(selects));
                let copied = self.copied(&field);
                Facts { cost: cost.saturating_add(copied), ..field }
            }
            Expr::Call(call) => {
                self.must_be_readable(node, call);
                let facts = self.call(call);
                if let Some(function) = numbers::in_place_of(&call.func_name, facts.ty.kind) {
                    self.replacements.insert(node.id, function);
                }
                facts
            }
            Expr::List(list) => {
                let (mut cost, mut element, mut kinds) = (10_u64, None, Vec::new());
                for (index, node) in list.elements.iter().enumerate() {
                    let item = self.visit(node);
                    cost = cost.saturating_add(item.cost);
                    let ty = match (list.optional_indices.contains(&index), item.ty.element()) {
                        (true, Some(inner)) => inner,
                        _ => sized(&item),
                    };
                    kinds.push(ty.kind);
                    element = Some(self.joined(element, node, ty));
                }
                self.listed = kinds;
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
                        let ty = match (entry.optional, value.ty.element()) {
                            (true, Some(inner)) => inner,
                            _ => sized(&value),
                        };
                        values = Some(self.joined(values, &entry.value, ty));
                    }
                }
                let size = Range::exactly(map.entries.len());
                let element = values.unwrap_or_else(|| Decl::of_kind(Kind::Dyn));
                let key = keys.map_or(Kind::Dyn, |key: Arc<Decl>| key.kind);
                Facts { ty: Decl::map(key, element, size.max), size, cost }
            }
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::Struct(message) => {
                // Nothing in Kubernetes can be made this way, and the interpreter cannot either.
                self.error(|_| 0, &format!("undeclared reference to '{}' (in container '')", message.type_name));
                made(Kind::Dyn, None, 40)
            }
            Expr::Unspecified => {
                self.error(|_| 0, "empty expression");
                made(Kind::Dyn, None, 0)
            }
        }
    }

    /// Where it stands is only looked for if it is told.
    fn error(&mut self, at: impl FnOnce(&str) -> usize, message: &str) {
        let source = self.source;
        self.errors.add(|| locate::located(source, at(source), message));
    }

    fn copied(&mut self, facts: &Facts) -> u64 {
        self.deep_size(&facts.ty)
    }

    /// How many values our interpreter touches when it copies one or compares it; the original's only points at it.
    fn deep_size(&mut self, ty: &Decl) -> u64 {
        if !self.running {
            return 0;
        }
        self.effort = self.effort.saturating_add(ty.parts());
        ty.deep_size()
    }

    /// The larger of two types in every part.
    fn larger(&mut self, a: &Arc<Decl>, b: &Arc<Decl>) -> Arc<Decl> {
        if self.room < u64::MAX {
            self.effort = self.effort.saturating_add(a.parts()).saturating_add(b.parts());
        }
        if Arc::ptr_eq(a, b) || self.effort > self.room { a.clone() } else { a.larger(b) }
    }

    fn name(&mut self, name: &str) -> Facts {
        if let Some((_, facts)) = self.vars.iter().rev().find(|(known, _)| known == name) {
            return Facts { cost: 1, ..facts.clone() };
        }
        if !signatures::TYPE_NAMES.contains(&name) {
            let message = format!("undeclared reference to '{name}' (in container '')");
            self.error(|source| locate::of_name(source, name), &message);
        }
        made(Kind::Dyn, Some(Range::ONE), 1)
    }

    /// A field of a value, by name.
    fn field(&mut self, operand: &Facts, name: &str) -> Facts {
        selected(operand, name).unwrap_or_else(|message| {
            self.error(|source| locate::of_field(source, name), &message);
            made(Kind::Dyn, None, 0)
        })
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
            self.error(|source| locate::of_call(source, &call.func_name), &message);
            return made(Kind::Dyn, None, arguments);
        };
        self.must_be_called_on(name, target.as_ref(), &args);
        if name == "format" {
            self.must_be_filled(call);
        }
        let ty = signatures::result(yields, target.as_ref().map(|f| &f.ty), args.first().map(|f| &f.ty));
        let number = |index: usize| match call.args.get(index).map(|arg| &arg.expr) {
            Some(Expr::Literal(LiteralValue::Int(number))) => u64::try_from(*number.inner()).ok(),
            _ => None,
        };
        let (cost, size) = cost_of_calls::of(name, target.as_ref(), &args, number);
        let size = self.running_size(name, target.as_ref(), &args).or(size);
        let more = self.running_cost(name, cost, size, target.as_ref(), &args);
        let cost = cost.saturating_add(arguments).saturating_add(more);
        match (size, yields) {
            (Some(size), _) => Facts { ty: resized(&ty, size), size, cost },
            (None, signatures::Yields::Target | signatures::Yields::Item) => declared(ty, cost),
            (None, _) if ty.element().is_some() => declared(ty, cost),
            (None, _) => made(ty.kind, None, cost),
        }
    }

    /// How large the result of a call gets here, where the original does not ask.
    fn running_size(&mut self, name: &str, target: Option<&Facts>, args: &[Facts]) -> Option<Range> {
        let target = target.filter(|_| self.running)?;
        let max = match name {
            "flatten" => self.deep_size(&target.ty),
            "format" => {
                let values = args.iter().map(|facts| self.deep_size(&facts.ty)).fold(0, u64::saturating_add);
                target.size.max.saturating_add(values.saturating_mul(WRITTEN))
            }
            _ => return None,
        };
        Some(Range { min: 0, max })
    }

    /// What a call costs our interpreter beyond what it costs the original's.
    fn running_cost(
        &mut self,
        name: &str,
        cost: u64,
        size: Option<Range>,
        target: Option<&Facts>,
        args: &[Facts],
    ) -> u64 {
        if !self.running {
            return 0;
        }
        let copied = target.into_iter().chain(args).map(|facts| self.copied(facts)).fold(0, u64::saturating_add);
        let result = size.map_or(0, |size| size.max);
        let more = match name {
            "matches" | "find" | "findAll" => {
                let text = target.or(args.first()).map_or(0, |facts| facts.size.max);
                // It is compiled anew each time.
                let pattern = pattern::compiling(self.pattern).saturating_add(pattern::matching(self.pattern, text));
                pattern.saturating_add(if name == "findAll" { result.saturating_mul(PIECE) } else { 0 })
            }
            // A text in many pieces takes many times its room.
            "split" => result.saturating_mul(PIECE),
            // What a text grows by is paid before anybody makes room for it.
            "replace" => result.saturating_sub(target.map_or(0, |facts| facts.size.max)),
            "format" => scaled(result, 1.0 / 16.0),
            // A zone is read anew each time.
            _ if name.starts_with("get") && !args.is_empty() => ZONE,
            // The original takes any two items to be compared at a glance.
            "sets.contains" | "sets.intersects" | "sets.equivalent" | "distinct" | "indexOf" | "lastIndexOf" => {
                let element = target.or(args.first()).and_then(|facts| facts.ty.element());
                let each = element.map_or(1, |element| self.deep_size(&element));
                cost.saturating_mul(each.saturating_sub(1))
            }
            _ => 0,
        };
        copied.saturating_add(more)
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) -> Facts {
        let range = self.visit(&loops.iter_range);
        let init = self.visit(&loops.accu_init);
        let item = match (range.ty.kind, range.ty.element()) {
            // Iterating over a map gives its keys.
            (Kind::Map, _) if range.ty.key == Kind::String => made(Kind::String, Some(Range { min: 0, max: 0 }), 0),
            (Kind::Map, _) => made(range.ty.key, None, 0),
            (Kind::List, Some(element)) => declared(element, 0),
            (Kind::List | Kind::Dyn, _) => made(Kind::Dyn, None, 0),
            _ => {
                let ty = signatures::written(&range.ty);
                let message = format!(
                    "expression of type '{ty}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.error(|_| 0, &message);
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
        per_item = per_item.saturating_add(self.deep_size(&after).saturating_mul(2));
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

/// A field of a value, or why there can be none of that name.
fn selected(operand: &Facts, name: &str) -> Result<Facts, String> {
    let (ty, anything) = (&operand.ty, || made(Kind::Dyn, None, 0));
    match (ty.kind, ty.element()) {
        (Kind::Object, _) => match ty.field(name) {
            Some(field) => Ok(declared(field, 0)),
            None => Err(format!("undefined field '{name}'")),
        },
        (Kind::Map, element) => Ok(element.map_or_else(anything, |element| declared(element, 0))),
        (Kind::Optional, Some(inner)) => {
            let field = selected(&declared(inner, 0), name)?;
            Ok(declared(Decl::containing(Kind::Optional, field.ty, 1), 0))
        }
        (Kind::Optional, None) | (Kind::Dyn, _) => Ok(anything()),
        _ => Err(format!("type '{}' does not support field selection", signatures::written(ty))),
    }
}

/// An item of a list or a map, and whether that was in an optional: then so is the item.
fn indexed(on: &Facts) -> (Facts, bool) {
    let in_optional = on.ty.kind == Kind::Optional;
    let holder = if in_optional { on.ty.element() } else { Some(on.ty.clone()) };
    let item = holder.and_then(|holder| holder.element());
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
    use crate::schema::cel::{scope, values};

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
            assert_eq!(estimate.errors.to_string(), "", "{rule}");
            assert!(estimate.kind == Kind::Bool, "{rule}");
            assert_eq!(parsed.run(&scope(value.clone(), None, false)), Ok(Value::Bool(true)), "{rule}");
        }
    }
}
