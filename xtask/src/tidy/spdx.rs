//! Licence expressions, as far as crates use them: names, `WITH`, `AND`, `OR`, brackets, and the
//! old way of writing `/` for `OR`.

/// Whether `expression` can be satisfied with licences that `allowed` accepts.
///
/// A licence with an exception is asked for as a whole (`Apache-2.0 WITH LLVM-exception`) and, as
/// an exception only ever grants more, by its bare name. An error says what could not be read.
pub(super) fn satisfied(expression: &str, allowed: &impl Fn(&str) -> bool) -> Result<bool, String> {
    let mut words = words(expression).into_iter().peekable();
    let answer = any(&mut words, allowed)?;
    match words.next() {
        None => Ok(answer),
        Some(word) => Err(format!("`{word}` is not expected in `{expression}`")),
    }
}

type Words = std::iter::Peekable<std::vec::IntoIter<String>>;

/// `AND` binds tighter than `OR`.
fn any(words: &mut Words, allowed: &impl Fn(&str) -> bool) -> Result<bool, String> {
    let mut answer = all(words, allowed)?;
    while words.next_if(|word| word == "OR" || word == "/").is_some() {
        // Read first: a short circuit would leave words behind.
        let other = all(words, allowed)?;
        answer = answer || other;
    }
    Ok(answer)
}

fn all(words: &mut Words, allowed: &impl Fn(&str) -> bool) -> Result<bool, String> {
    let mut answer = one(words, allowed)?;
    while words.next_if_eq("AND").is_some() {
        let other = one(words, allowed)?;
        answer = answer && other;
    }
    Ok(answer)
}

fn one(words: &mut Words, allowed: &impl Fn(&str) -> bool) -> Result<bool, String> {
    let word = words.next().ok_or("the licence ends too early")?;
    match word.as_str() {
        "(" => {
            let answer = any(words, allowed)?;
            words.next_if_eq(")").ok_or("a bracket is not closed")?;
            Ok(answer)
        }
        ")" | "/" | "AND" | "OR" | "WITH" => Err(format!("`{word}` stands where a licence should")),
        name if words.next_if_eq("WITH").is_some() => {
            let exception = words.next().ok_or("WITH names no exception")?;
            Ok(allowed(&format!("{name} WITH {exception}")) || allowed(name))
        }
        name => Ok(allowed(name)),
    }
}

fn words(expression: &str) -> Vec<String> {
    let mut spaced = String::with_capacity(expression.len() + 8);
    for c in expression.chars() {
        if matches!(c, '(' | ')' | '/') {
            spaced.extend([' ', c, ' ']);
        } else {
            spaced.push(c);
        }
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(allowed: &[&str], expression: &str) -> Result<bool, String> {
        satisfied(expression, &|licence: &str| allowed.contains(&licence))
    }

    #[test]
    fn one_side_of_an_or_is_enough() {
        assert_eq!(with(&["MIT"], "MIT OR GPL-3.0-only"), Ok(true));
        assert_eq!(with(&["MIT"], "GPL-3.0-only OR MIT"), Ok(true));
        assert_eq!(with(&["MIT"], "Unlicense/MIT"), Ok(true));
        assert_eq!(with(&["MIT"], "Apache-2.0 / GPL-3.0-only"), Ok(false));
    }

    #[test]
    fn an_and_needs_both() {
        assert_eq!(with(&["MIT"], "MIT AND ISC"), Ok(false));
        assert_eq!(with(&["MIT", "ISC"], "MIT AND ISC"), Ok(true));
    }

    #[test]
    fn brackets_bind_before_and_which_binds_before_or() {
        assert_eq!(with(&["MIT"], "MIT OR Apache-2.0 AND ISC"), Ok(true));
        assert_eq!(with(&["MIT"], "(MIT OR Apache-2.0) AND ISC"), Ok(false));
        assert_eq!(with(&["MIT", "ISC"], "(MIT OR Apache-2.0) AND ISC"), Ok(true));
    }

    #[test]
    fn an_exception_grants_more_never_less() {
        assert_eq!(with(&["Apache-2.0"], "Apache-2.0 WITH LLVM-exception"), Ok(true));
        assert_eq!(with(&["Apache-2.0 WITH LLVM-exception"], "Apache-2.0 WITH LLVM-exception"), Ok(true));
        assert_eq!(with(&["Apache-2.0 WITH LLVM-exception"], "Apache-2.0"), Ok(false));
        assert_eq!(with(&["MIT"], "GPL-2.0-only WITH Classpath-exception-2.0"), Ok(false));
    }

    #[test]
    fn nonsense_is_an_error_and_not_a_verdict() {
        for nonsense in ["", "MIT OR", "(MIT", "MIT)", "MIT ISC", "AND MIT", "MIT WITH"] {
            assert!(with(&["MIT", "ISC"], nonsense).is_err(), "{nonsense:?}");
        }
    }
}
