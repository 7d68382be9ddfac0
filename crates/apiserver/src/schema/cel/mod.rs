//! CEL expressions of `x-kubernetes-validations`: parsing, types, cost, and running them.

mod cost_of_calls;
pub(crate) mod decl;
mod estimate;
mod facts;
mod format;
mod functions;
mod locate;
mod macros;
mod numbers;
mod operands;
mod quantities;
mod signatures;
mod strings;
mod texts;
mod times;
pub(crate) mod values;

pub(crate) use decl::{Decl, Items, Kind};
pub(crate) use estimate::Estimate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use kube_cel::cel::objects::{OptionalValue, Value};
use kube_cel::cel::parser::Parser;
use kube_cel::cel::{Context, ExecutionError, ResolveResult};

use crate::schema::pattern;

/// Expressions longer than this are refused, as by the original.
const MAX_CHARS: usize = 100_000;

/// How deep an expression may nest. Parsing, checking and running it all recurse, and must fit a small stack.
const MAX_NESTING: usize = 120;

/// What is wrong with an expression. Each complaint shows the line that it is about, so not all of many are told.
#[derive(Default)]
pub(crate) struct Complaints {
    told: Vec<String>,
    more: usize,
}

impl Complaints {
    /// As many as the original tells.
    const MOST: usize = 100;

    /// Adds one, which is worded only if it is told.
    fn add(&mut self, word: impl FnOnce() -> String) {
        if self.told.len() < Self::MOST { self.told.push(word()) } else { self.more += 1 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.told.is_empty()
    }
}

impl std::fmt::Display for Complaints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.told.join("\n"))?;
        if self.more > 0 { write!(f, "\n{} more errors were truncated", self.more) } else { Ok(()) }
    }
}

/// A parsed expression.
pub(crate) struct Expression {
    source: String,
    tree: IdedExpr,
    /// What is run instead, where the interpreter would do some of it wrong.
    settled: Option<IdedExpr>,
    /// Where it calls a macro that only the parser knows.
    unknown_macro: Option<usize>,
    /// It speaks of `oldSelf`.
    pub(crate) uses_old: bool,
    /// How large its largest pattern is once it is compiled.
    pattern: usize,
}

impl Expression {
    /// Parses; the error is what the original's compiler says.
    pub(crate) fn parse(source: &str) -> Result<Self, String> {
        if source.chars().count() > MAX_CHARS {
            return Err(format!(
                "ERROR: <input>:-1:0: expression code point size exceeds limit: size: {}, limit {MAX_CHARS}",
                source.chars().count()
            ));
        }
        if locate::nesting(source) > MAX_NESTING {
            return Err(format!("ERROR: <input>:-1:0: expression recursion limit exceeded: {MAX_NESTING}"));
        }
        let mut tree = Parser::default().enable_optional_syntax(true).parse(source).map_err(|errors| {
            let mut complaints = Complaints::default();
            for error in &errors.errors {
                let (line, column) = (error.pos.0.max(1) as usize, error.pos.1.max(0) as usize);
                complaints.add(|| locate::located_at(source, line, column, &error.msg));
            }
            complaints.to_string()
        })?;
        let mut found = Found::default();
        prepare(&mut tree, &mut found);
        let (unknown_macro, Found { uses_old, pattern }) = (estimate::unknown_macro(source), found);
        Ok(Self { source: source.to_owned(), tree, settled: None, unknown_macro, uses_old, pattern })
    }

    /// Types and worst cost, with `self` and `oldSelf` of the given type.
    pub(crate) fn estimate(&self, scope: &Arc<Decl>, old_is_optional: bool) -> Estimate {
        Estimate::of(self, scope, old_is_optional)
    }

    /// Worst cost for us, on values that are measured. It is found in about as many steps as there is `room` for: what
    /// takes more costs more than anybody has.
    pub(crate) fn running_cost(&self, scope: &Arc<Decl>, old_is_optional: bool, room: u64) -> Estimate {
        Estimate::of_running(self, scope, old_is_optional, room)
    }

    /// Gets ready to run on values of a type, and tells the most that this can cost; see [`Self::running_cost`].
    pub(crate) fn settle(&mut self, scope: &Arc<Decl>, old_is_optional: bool, room: u64) -> u64 {
        let Estimate { cost, replacements, .. } = self.running_cost(scope, old_is_optional, room);
        self.settled = (!replacements.is_empty()).then(|| {
            let mut tree = self.tree.clone();
            numbers::replace(&mut tree, &replacements);
            tree
        });
        cost
    }

    /// Runs the expression. The caller has made sure that it is affordable.
    pub(crate) fn run(&self, scope: &Context<'_>) -> Result<Value, String> {
        let tree = self.settled.as_ref().unwrap_or(&self.tree);
        // The interpreter is not ours. Should it panic, it is the rule that fails, and not the server: nothing that it
        // leaves half done is looked at again.
        match catch_unwind(AssertUnwindSafe(|| Value::resolve(tree, scope))) {
            Ok(outcome) => outcome.map_err(|error| worded(&error)),
            Err(_) => Err("internal error: the interpreter gave up".to_owned()),
        }
    }
}

/// `self` and `oldSelf`, on top of all functions.
pub(crate) fn scope(current: Value, old: Option<Value>, old_is_optional: bool) -> Context<'static> {
    let mut scope = FUNCTIONS.new_inner_scope();
    scope.add_variable_from_value("self", current);
    match (old, old_is_optional) {
        (Some(old), false) => scope.add_variable_from_value("oldSelf", old),
        (Some(old), true) => {
            scope.add_variable_from_value("oldSelf", Value::Opaque(Arc::new(OptionalValue::of(old))));
        }
        (None, true) => scope.add_variable_from_value("oldSelf", Value::Opaque(Arc::new(OptionalValue::none()))),
        (None, false) => {}
    }
    scope
}

/// All functions, registered once: making them anew for each rule would cost more than running it.
static FUNCTIONS: LazyLock<Context<'static>> = LazyLock::new(|| {
    let mut context = Context::default().with_all();
    // A type is represented by its name. Only comparing types is of use in a rule, and names compare alike.
    context.add_function("type", |value: Value| type_name(&value).to_owned());
    functions::add(&mut context);
    context.add_function("dyn", |value: Value| -> ResolveResult { Ok(value) });
    for name in signatures::TYPE_NAMES {
        context.add_variable_from_value(*name, (*name).to_owned());
    }
    context
});

/// Runs an expression that speaks of no variables.
fn run_alone(tree: &IdedExpr) -> Result<Value, ExecutionError> {
    Value::resolve(tree, &FUNCTIONS)
}

fn type_name(value: &Value) -> &str {
    match value {
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Bool(_) => "bool",
        Value::Null => "null_type",
        Value::Timestamp(_) => "google.protobuf.Timestamp",
        Value::Duration(_) => "google.protobuf.Duration",
        Value::Opaque(of_its_own) => of_its_own.runtime_type_name(),
        _ => "dyn",
    }
}

/// What is found in a tree.
#[derive(Default)]
struct Found {
    uses_old: bool,
    pattern: usize,
}

/// How large the pattern of a call is once it is compiled. One that is no literal may be as large as any.
fn pattern_of(call: &CallExpr) -> usize {
    let position = match call.func_name.as_str() {
        "matches" if call.target.is_none() => 1,
        "matches" | "find" | "findAll" => 0,
        _ => return 0,
    };
    match call.args.get(position).map(|arg| &arg.expr) {
        Some(Expr::Literal(LiteralValue::String(source))) => pattern::size(source.inner()),
        _ => pattern::SIZE_LIMIT,
    }
}

/// Readies a tree for the interpreter, and looks around in it on the way. Answers how many macros stand in a row in it.
fn prepare(node: &mut IdedExpr, found: &mut Found) -> usize {
    if let Expr::Call(call) = &node.expr {
        found.pattern = found.pattern.max(pattern_of(call));
    }
    match &mut node.expr {
        Expr::Ident(name) => {
            found.uses_old |= name == "oldSelf";
            0
        }
        Expr::Call(call) => {
            // The interpreter's `a.?b` fails on an absent field instead of yielding none; its `a[?'b']` does right.
            if call.func_name == operators::OPT_SELECT {
                call.func_name = operators::OPT_INDEX.to_owned();
            }
            let target = call.target.as_deref_mut().map_or(0, |target| prepare(target, found));
            let args = call.args.iter_mut().map(|arg| prepare(arg, found)).max().unwrap_or_default();
            macros::expand(&mut node.expr, target).max(args)
        }
        other => parts(other).into_iter().map(|part| prepare(part, found)).max().unwrap_or_default(),
    }
}

/// What an expression is made of.
fn parts(expression: &mut Expr) -> Vec<&mut IdedExpr> {
    match expression {
        Expr::Select(select) => vec![&mut *select.operand],
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).collect(),
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => {
            let entries = map.entries.iter_mut().filter_map(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => Some([&mut entry.key, &mut entry.value]),
                EntryExpr::StructField(_) => None,
            });
            entries.flatten().collect()
        }
        Expr::Comprehension(loops) => {
            let ComprehensionExpr { iter_range, accu_init, loop_cond, loop_step, result, .. } = &mut **loops;
            vec![iter_range, accu_init, loop_cond, loop_step, result]
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => Vec::new(),
    }
}

/// An error of the interpreter in the original's words.
fn worded(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".into(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".into(),
        ExecutionError::Overflow(_, Value::UInt(_), _) => "unsigned integer overflow".into(),
        ExecutionError::Overflow(..) => "integer overflow".into(),
        ExecutionError::IndexOutOfBounds(Value::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::NotSupportedAsMethod { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::UnexpectedType { .. } => "no such overload".into(),
        ExecutionError::FunctionError { function, message } => worded_failure(function, message),
        other => other.to_string(),
    }
}

/// The failure of a function in the original's words, where the interpreter has others.
fn worded_failure(function: &str, message: &str) -> String {
    match function {
        "slice" => format!("cannot {}", message.replace(" out of range for list of length ", ", list is length ")),
        "min" | "max" if message.contains("empty list") => format!("{function} called on empty list"),
        "charAt" => match message.split(' ').find_map(|word| word.parse::<i64>().ok()) {
            Some(index) => format!("index out of range: {index}"),
            None => message.to_owned(),
        },
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_makes_the_interpreter_panic_fails_and_nothing_else_does() {
        // No such rule is admitted; it stands for all that nobody knows of.
        let hostile = Expression::parse("Widget{}").expect("an expression");
        let scope = scope(Value::Null, None, false);
        assert_eq!(hostile.run(&scope), Err("internal error: the interpreter gave up".to_owned()));
        let next = Expression::parse("1 + 1 == 2").expect("an expression");
        assert_eq!(next.run(&scope), Ok(Value::Bool(true)));
    }
}
