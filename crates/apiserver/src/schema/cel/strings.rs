//! Looking for, cutting and replacing parts of texts. Places are counted in characters.

use std::sync::Arc;

use kube_cel::cel::extractors::{Arguments, This};
use kube_cel::cel::objects::Value;
use kube_cel::cel::{Context, ExecutionError, ResolveResult};

use super::functions::failed;

/// Puts the functions of texts in the place of the interpreter's own.
pub(super) fn add(context: &mut Context<'_>) {
    context.add_function("indexOf", |This(of): This<Value>, Arguments(args): Arguments| match (&of, args.as_slice()) {
        (Value::String(text), [Value::String(wanted)]) => index_of(text, wanted, 0),
        (Value::String(text), [Value::String(wanted), Value::Int(from)]) => index_of(text, wanted, *from),
        (Value::List(items), [wanted]) => Ok(place(items.iter().position(|item| item == wanted))),
        _ => Err(ExecutionError::NoSuchOverload),
    });
    context.add_function("lastIndexOf", |This(of): This<Value>, Arguments(args): Arguments| {
        match (&of, args.as_slice()) {
            (Value::String(text), [Value::String(wanted)]) => Ok(place(last_index_of(text, wanted, usize::MAX))),
            (Value::String(text), [Value::String(wanted), Value::Int(to)]) => last_index_up_to(text, wanted, *to),
            (Value::List(items), [wanted]) => Ok(place(items.iter().rposition(|item| item == wanted))),
            _ => Err(ExecutionError::NoSuchOverload),
        }
    });
    context.add_function("substring", |This(text): This<Arc<String>>, Arguments(args): Arguments| {
        match args.as_slice() {
            [Value::Int(from)] => substring(&text, *from, None),
            [Value::Int(from), Value::Int(to)] => substring(&text, *from, Some(*to)),
            _ => Err(ExecutionError::NoSuchOverload),
        }
    });
    context.add_function("replace", |This(text): This<Arc<String>>, Arguments(args): Arguments| {
        let (old, new, most) = match args.as_slice() {
            [Value::String(old), Value::String(new)] => (old, new, -1),
            [Value::String(old), Value::String(new), Value::Int(most)] => (old, new, *most),
            _ => return Err(ExecutionError::NoSuchOverload),
        };
        Ok(made(text.replacen(old.as_str(), new, at_most(most))))
    });
    context.add_function("split", |This(text): This<Arc<String>>, Arguments(args): Arguments| {
        let (separator, most) = match args.as_slice() {
            [Value::String(separator)] => (separator, -1),
            [Value::String(separator), Value::Int(most)] => (separator, *most),
            _ => return Err(ExecutionError::NoSuchOverload),
        };
        let pieces = split(&text, separator, at_most(most));
        Ok(Value::List(Arc::new(pieces.into_iter().map(|piece| made(piece.to_owned())).collect())))
    });
}

fn made(text: String) -> Value {
    Value::String(Arc::new(text))
}

/// Fewer than none are all.
fn at_most(count: i64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// A place, or -1 for none.
fn place(found: Option<usize>) -> Value {
    Value::Int(found.map_or(-1, |place| place as i64))
}

fn out_of_range(index: i64) -> ExecutionError {
    failed("index", format!("index out of range: {index}"))
}

/// Where the character with that number begins; nothing beyond the last.
fn byte_of(text: &str, character: usize) -> Option<usize> {
    text.char_indices().nth(character).map(|(at, _)| at)
}

/// Nothing is everywhere, even where there is no text; all else is nowhere beyond the end.
fn index_of(text: &str, wanted: &str, from: i64) -> ResolveResult {
    if wanted.is_empty() {
        return Ok(Value::Int(from));
    }
    let from = usize::try_from(from).map_err(|_| out_of_range(from))?;
    let Some(start) = byte_of(text, from) else { return Ok(place(None)) };
    let found = text[start..].find(wanted).map(|at| from + text[start..start + at].chars().count());
    Ok(place(found))
}

fn last_index_up_to(text: &str, wanted: &str, to: i64) -> ResolveResult {
    if wanted.is_empty() {
        return Ok(Value::Int(to));
    }
    let to = usize::try_from(to).map_err(|_| out_of_range(to))?;
    // Beyond the end, there is not even the beginning of anything.
    Ok(place(byte_of(text, to).and_then(|start| last_index_of(text, wanted, start))))
}

/// The last place that begins at that byte or before it.
fn last_index_of(text: &str, wanted: &str, start: usize) -> Option<usize> {
    let mut end = start.saturating_add(wanted.len()).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].rfind(wanted).map(|at| text[..at].chars().count())
}

fn substring(text: &str, from: i64, to: Option<i64>) -> ResolveResult {
    if let Some(to) = to.filter(|to| from > *to) {
        return Err(failed("substring", format!("invalid substring range. start: {from}, end: {to}")));
    }
    let length = text.chars().count();
    let within = |index: i64| {
        let index_in = usize::try_from(index).ok().filter(|index| *index <= length);
        index_in.ok_or_else(|| out_of_range(index))
    };
    let from = within(from)?;
    let to = to.map_or(Ok(length), within)?;
    Ok(made(text.chars().skip(from).take(to - from).collect()))
}

/// At most so many pieces, the last of which is all the rest. Without anything between them, they are the characters.
fn split<'a>(text: &'a str, separator: &str, most: usize) -> Vec<&'a str> {
    if !separator.is_empty() {
        return text.splitn(most, separator).collect();
    }
    let mut pieces: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next().filter(|_| pieces.len() < most) {
        let is_last = pieces.len() + 1 == most;
        let (piece, after) = rest.split_at(if is_last { rest.len() } else { first.len_utf8() });
        pieces.push(piece);
        rest = after;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::cel::{Expression, scope};

    fn outcome(expression: &str) -> Result<Value, String> {
        Expression::parse(expression).expect("an expression").run(&scope(Value::Null, None, false))
    }

    #[test]
    fn places_are_found_as_by_the_original() {
        for (call, place) in [
            ("'hello mellow'.indexOf('ello')", 1),
            ("'hello mellow'.indexOf('ello', 2)", 7),
            ("'hello mellow'.indexOf('jello')", -1),
            ("'hello'.indexOf('hello!')", -1),
            ("'hello'.indexOf('l', 99)", -1),
            ("'hello'.indexOf('')", 0),
            ("'hello'.indexOf('', 99)", 99),
            ("'hello'.indexOf('', -1)", -1),
            ("'äöü ä'.indexOf('ä', 1)", 4),
            ("''.indexOf('a')", -1),
            ("'hello mellow'.lastIndexOf('ello')", 7),
            ("'hello mellow'.lastIndexOf('ello', 6)", 1),
            ("'hello mellow'.lastIndexOf('ello', 7)", 7),
            ("'hello mellow'.lastIndexOf('ello', 11)", 7),
            ("'hello mellow'.lastIndexOf('ello', 12)", -1),
            ("'hello'.lastIndexOf('')", 5),
            ("'hello'.lastIndexOf('', -7)", -7),
            ("'öaöaö'.lastIndexOf('öa', 1)", 0),
            ("'aäää'.lastIndexOf('aä', 0)", 0),
            ("''.lastIndexOf('a')", -1),
            ("[1, 2, 1].indexOf(1)", 0),
            ("[1, 2, 1].lastIndexOf(1)", 2),
            ("[1].lastIndexOf(3)", -1),
        ] {
            assert_eq!(outcome(call), Ok(Value::Int(place)), "{call}");
        }
        for call in ["'hello'.indexOf('l', -1)", "'hello'.lastIndexOf('l', -1)"] {
            assert_eq!(outcome(call), Err("index out of range: -1".to_owned()), "{call}");
        }
    }

    #[test]
    fn parts_are_cut_and_replaced_as_by_the_original() {
        for expression in [
            "'tacocat'.substring(4) == 'cat' && 'tacocat'.substring(0, 4) == 'taco' && 'äöü'.substring(1, 2) == 'ö'",
            "'abc'.substring(3) == '' && 'abc'.substring(1, 1) == ''",
            "'aaa'.replace('a', 'b') == 'bbb' && 'aaa'.replace('a', 'b', 2) == 'bba'",
            "'aaa'.replace('a', 'b', -1) == 'bbb' && 'aaa'.replace('a', 'b', 0) == 'aaa'",
            "'ab'.replace('', '_') == '_a_b_' && 'ab'.replace('', '_', 2) == '_a_b'",
            "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
            "'a,b'.split(',', 0) == [] && 'a,b'.split(',', -1) == ['a', 'b'] && ''.split(',') == ['']",
            "'aöc'.split('') == ['a', 'ö', 'c'] && 'aöc'.split('', 2) == ['a', 'öc'] && ''.split('') == []",
            "'abc'.split('', 1) == ['abc'] && 'abc'.split('', 0) == []",
        ] {
            assert_eq!(outcome(expression), Ok(Value::Bool(true)), "{expression}");
        }
        for (call, why) in [
            ("'abc'.substring(4)", "index out of range: 4"),
            ("'abc'.substring(-1)", "index out of range: -1"),
            ("'abc'.substring(1, 9)", "index out of range: 9"),
            ("'abc'.substring(2, 1)", "invalid substring range. start: 2, end: 1"),
        ] {
            assert_eq!(outcome(call), Err(why.to_owned()), "{call}");
        }
    }

    #[test]
    fn what_is_long_is_looked_for_in_long_texts_at_once() {
        // Letter by letter at every place, this would take minutes.
        let (text, wanted) = ("a".repeat(1_000_000), format!("{}b", "a".repeat(500_000)));
        assert_eq!(index_of(&text, &wanted, 0), Ok(Value::Int(-1)));
        let wanted = format!("b{}", "a".repeat(500_000));
        assert_eq!(last_index_of(&text, &wanted, usize::MAX), None);
    }
}
