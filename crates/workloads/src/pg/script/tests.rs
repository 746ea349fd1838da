#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::{Rng, *};

fn script(text: &str) -> Script {
    Script::parse("test", text).unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

fn refused(text: &str) -> String {
    Script::parse("test", text).expect_err(text).to_string()
}

/// Runs a script without a server; returns the SQL it would send, with values.
fn run(text: &str, vars: &mut Vars) -> Result<Vec<String>, String> {
    let (script, mut rng, mut at, mut sent) = (script(text), Rng::new(1), 0, vec![]);
    while let Some(command) = script.commands().get(at) {
        at += 1;
        match command {
            Command::Sql(sql) => sent.push(String::from_utf8(sql.render_simple(vars)).unwrap()),
            Command::Set { name, expr } => {
                let value = expr.eval(vars, &mut rng)?;
                vars.set(name, value);
            }
            Command::If { condition, otherwise } => {
                assert!(*otherwise >= at, "{script:?}");
                if !condition.eval(vars, &mut rng)?.is_true()? {
                    at = *otherwise;
                }
            }
            Command::Jump(to) => {
                assert!(*to >= at, "{script:?}");
                at = *to;
            }
            _ => {}
        }
    }
    Ok(sent)
}

fn eval(expression: &str) -> Result<String, String> {
    let mut vars = Vars::predefined(3, 10, 42, 7);
    run(&format!("\\set x {expression}\n:x"), &mut vars).map(|sent| sent.concat())
}

#[test]
fn the_built_in_transaction_is_read_and_its_values_are_in_range() {
    let text = "\\set aid random(1, 100000 * :scale)\n\\set delta random(-5000, 5000)\nBEGIN;\n\
                UPDATE pgbench_accounts SET abalance = abalance + :delta\n  WHERE aid = :aid;\nEND;\n";
    let script = script(text);
    assert_eq!(script.commands().len(), 5);
    let lines: Vec<usize> = (0..5).map(|n| script.line(n)).collect();
    assert_eq!(lines, [1, 2, 3, 4, 6]);
    let mut vars = Vars::predefined(0, 1, 0, 0);
    for _ in 0..100 {
        run(text, &mut vars).unwrap();
        assert!(matches!(vars.get("aid"), Some(Value::Int(1..=100_000))), "{vars:?}");
        assert!(matches!(vars.get("delta"), Some(Value::Int(-5000..=5000))), "{vars:?}");
    }
}

#[test]
fn branches_are_taken_as_conditions_say() {
    let text = "\\if :n = 1\none;\n\\elif :n = 2\n\\if false\nno;\n\\else\ntwo;\n\\endif\n\
                \\elif :n = 3\n\\else\nmany;\n\\endif\nend;";
    for (n, expected) in
        [(1, &["one", "end"][..]), (2, &["two", "end"]), (3, &["end"]), (4, &["many", "end"])]
    {
        let mut vars = Vars::default();
        vars.set("n", Value::Int(n));
        assert_eq!(run(text, &mut vars).unwrap(), expected);
    }
    // A branch that is not reached is not evaluated.
    assert_eq!(run("\\if true\n\\elif 1/0\n\\endif", &mut Vars::default()), Ok(vec![]));
}

#[test]
fn commands_end_with_their_line_unless_it_is_continued() {
    let all = script(
        "select 1 as a \\gset p_\n\\set x 1 + \\\n  2\n\\SLEEP 5ms\n\\sleep :x us\n\\sleep 1\n\
         select 2; \\aset\n\\startpipeline\nselect 3\n\\endpipeline\n\\\nselect 4",
    );
    let kinds: String = all
        .commands()
        .iter()
        .map(|c| match c {
            Command::Sql(_) => 'q',
            Command::Set { .. } => 's',
            Command::Sleep(_) => 'z',
            Command::Gset { prefix } if prefix == "p_" => 'g',
            Command::Aset { prefix } if prefix.is_empty() => 'a',
            Command::StartPipeline => '<',
            Command::EndPipeline => '>',
            _ => '?',
        })
        .collect();
    assert_eq!(kinds, "qgszzzqa<q>q");
    let mut vars = Vars::default();
    vars.set("x", Value::Text("2.9".into()));
    let sleeps: Vec<Value> = all
        .commands()
        .iter()
        .filter_map(|c| match c {
            Command::Sleep(expr) => Some(expr.eval(&vars, &mut Rng::new(0)).unwrap()),
            _ => None,
        })
        .collect();
    assert_eq!(sleeps, [5_000_000, 2_000, 1_000_000_000].map(Value::Int));
}

#[test]
fn operators_bind_as_in_sql() {
    for (expression, value) in [
        ("1 + 2 * 3 - 4 / 2 % 2", "7"),
        ("-2 * -3", "6"),
        ("~ 1 + 2", "-4"),
        ("1 * ~ 2 + 3", "-6"),
        ("~1 | 2", "-2"),
        ("1 << 2 + 1", "8"),
        ("1 | 2 = 3", "true"),
        ("not 1 = 2 and true", "true"),
        ("not null is null", "false"),
        ("1 = 1 is true", "true"),
        ("5 > 4 or 1/0 = 1", "true"),
        ("false and 1/0 = 1", "false"),
        ("null and false", "NULL"),
        ("null or true", "NULL"),
        ("true and null", "NULL"),
        ("1 isnull", "false"),
        ("null notnull", "false"),
        ("1 is not null", "true"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("case when 0 then 1 when 2 then 3 else 4 end", "3"),
        ("CASE WHEN null THEN 1 END", "NULL"),
        ("10 / 4", "2"),
        ("10 / 4.0", "2.5"),
        ("1.0 / 0", "Infinity"),
        ("-7 % 3", "-1"),
        (":client_id + :scale", "13"),
        ("int(2.5) + int(3.5)", "6"),
        ("greatest(1, 2.5, 2)", "2.5"),
        ("least(3)", "3"),
        ("debug(null)", "NULL"),
        ("abs(-3.5)", "3.5"),
        ("pi()", "3.14159265358979"),
        ("mod(7, 4) # 1", "2"),
        ("1 <> 1 \\\n", "false"),
    ] {
        assert_eq!(eval(expression).as_deref(), Ok(value), "{expression}");
    }
}

#[test]
fn what_cannot_be_computed_says_why() {
    for (expression, why) in [
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("9223372036854775807 + 1", "bigint add out of range"),
        ("-9223372036854775808 - 1", "bigint sub out of range"),
        ("9223372036854775807 * 2", "bigint mul out of range"),
        ("-9223372036854775808 / -1", "bigint div out of range"),
        (":nothing", "undefined variable \"nothing\""),
        ("1 and true", "cannot coerce int to boolean"),
        ("1 + true", "cannot coerce boolean to int"),
        ("int(1e30)", "double to int overflow for 1e+30"),
        ("random(2, 1)", "empty range given to random"),
        ("random(-1, 9223372036854775807)", "random range is too large"),
        (
            "random_zipfian(1, 9, 1.0)",
            "zipfian parameter must be in range [1.001, 1000] (not 1.000000)",
        ),
        (
            "random_gaussian(1, 9, 1.9)",
            "gaussian parameter must be at least 2.000000 (not 1.900000)",
        ),
        (
            "random_exponential(1, 9, 0)",
            "exponential parameter must be greater than zero (not 0.000000)",
        ),
        ("permute(1, 0)", "permute size parameter must be greater than zero"),
    ] {
        assert_eq!(eval(expression), Err(why.into()), "{expression}");
    }
}

#[test]
fn an_error_has_its_line_and_column() {
    for (text, error) in [
        ("select 1;\n\\set x 1 +\n", "2:11: the command ends where an expression is expected"),
        ("\\set x 1 + * 2", "1:12: unexpected \"*\" where an expression is expected"),
        ("\\set x 1 + \\\n   foo(2)", "2:4: there is no function \"foo\""),
        ("\\set x (1 + 2", "1:14: the command ends where an operator or \")\" is expected"),
        (
            "\\set x 1 2",
            "1:10: unexpected \"2\" where an operator or the command's end is expected",
        ),
        ("\\set x 1 < 2 < 3", "1:14: unexpected \"<\" where something else than one more"),
        ("\\set x ünder(1)", "1:8: there is no function \"ünder\""),
        ("é;\n é \\set x @", "2:11: unexpected character '@'"),
        ("\\set x mod(1)", "1:8: mod() takes 2 arguments, not 1"),
        ("\\set x hash()", "1:8: hash() takes 1 or 2 arguments, not 0"),
        ("\\set x 9223372036854775808", "1:8: bigint constant overflow"),
        ("\\set x 99999999999999999999", "1:8: bigint constant overflow"),
        ("\\set x 1e999", "1:8: double constant overflow"),
        ("\\set 1x 1", "1:6: \"1x\": a variable's name"),
        ("\\set", "1:1: \\set needs"),
        ("\\set x", "1:7: the command ends"),
        ("\\nothing", "1:1: there is no command \\nothing"),
        (";\n  \\shell ls", "2:3: \\shell is not supported"),
        ("\\sleep", "1:1: \\sleep needs a time"),
        ("\\sleep x", "1:8: \"x\" is no time"),
        ("\\sleep 1 h", "1:10: unknown unit \"h\""),
        ("\\sleep 1.5", "1:9: unknown unit \".5\""),
        ("\\sleep 1 s now", "1:12: unexpected argument \"now\""),
        ("\\if true\n\\if true\n\\endif", "1:1: \\if without matching \\endif"),
        ("\n\\endif", "2:1: \\endif without matching \\if"),
        ("\\else", "1:1: \\else without matching \\if"),
        ("\\if 1\n\\else\n\\elif 1", "3:1: \\elif after \\else"),
        ("\\if 1\n\\else\n\\else", "3:1: \\else after \\else"),
        ("\\if 1\n\\endif x", "2:8: unexpected argument \"x\""),
        ("\\gset", "1:1: \\gset must follow an SQL command"),
        ("select 1 \\gset\n\\gset", "2:1: \\gset must follow an SQL command"),
        ("select 1 \\gset a-b", "1:16: \"a-b\": a variable's name"),
        ("select 'x;\n", "1:8: the ' that begins here has no end"),
        ("select 1;\n/* /* */", "2:1: the comment that begins here does not end"),
        ("select $a$ $b$", "1:8: the $a$ that begins here has no end"),
    ] {
        let said = refused(text);
        assert!(said.starts_with(error), "{text:?}: {said}");
    }
}

#[test]
fn nesting_has_a_bound_and_length_has_one() {
    for deep in ["(", "-", "not ", "~", "case when ", "abs(", "1 + (", "+"] {
        let said = refused(&format!("\\set x {}", deep.repeat(100_000)));
        assert!(said.contains("too deep"), "{deep}: {said}");
    }
    let sum = |n: usize| format!("\\set x 1{}\n:x", " + 1".repeat(n));
    assert_eq!(run(&sum(900), &mut Vars::default()).unwrap(), ["901"]);
    assert!(refused(&sum(100_000)).contains("too long"));
    assert!(refused(&format!("\\set x least({}1)", "1,".repeat(20))).contains("too many"));
}

#[test]
fn weights_follow_the_last_at() {
    assert_eq!(weighted("a.sql"), Ok(("a.sql", 1)));
    assert_eq!(weighted("a@b.sql@7"), Ok(("a@b.sql", 7)));
    assert_eq!(weighted("select-only@0"), Ok(("select-only", 0)));
    for bad in ["a@", "a@x", "a@-1", "a@+1", "a@2147483648", "a@1.5"] {
        assert!(weighted(bad).unwrap_err().contains("weight"), "{bad}");
    }
}

/// Random sequences of script fragments.
fn soup() -> impl Strategy<Value = String> {
    let pieces = [
        "\\set",
        "\\if",
        "\\elif",
        "\\else",
        "\\endif",
        "\\gset",
        "\\sleep",
        "\\",
        " x ",
        " :x ",
        "1",
        "2.5",
        "+",
        "-",
        "*",
        "/",
        "%",
        "<<",
        ">",
        "=",
        "(",
        ")",
        ",",
        "case",
        "when",
        "then",
        "end",
        "is null",
        "not",
        "and",
        "random(",
        "permute(",
        "hash(",
        "abs(",
        "\n",
        "\\\n",
        ";",
        "'",
        "$$",
        "/*",
        "*/",
        "--",
        "select ",
        "::",
        "é",
        "9223372036854775808",
        "\r\n",
        "~",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..40)
        .prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn any_text_is_a_script_or_has_a_fault_within_it(text in "\\PC*|[ -~\n\\\\]*") {
        whole(&text)?;
    }

    #[test]
    fn any_mix_of_pieces_is_a_script_or_has_a_fault_within_it(text in soup()) {
        whole(&text)?;
    }

    /// Any operands give a value or an error, never a panic.
    #[test]
    fn arithmetic_never_panics(
        a in any::<i64>(), b in any::<i64>(), x in any::<f64>(),
        operator in proptest::sample::select(vec![
            "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "#", "<", "<=", "=", "<>", ">",
        ]),
        function in proptest::sample::select(vec![
            "mod", "pow", "random", "hash", "hash_fnv1a", "permute", "least",
        ]),
        distribution in proptest::sample::select(vec!["zipfian", "gaussian", "exponential"]),
    ) {
        let mut vars = Vars::predefined(0, 1, a, b);
        vars.set("a", Value::Int(a));
        vars.set("b", Value::Int(b));
        vars.set("x", Value::Double(x));
        for text in [
            format!("\\set y :a {operator} :b"),
            format!("\\set y :a {operator} :x"),
            format!("\\set y {function}(:a, :b)"),
            format!("\\set y {function}(:x, :b)"),
            // A parameter with nearly every draw refused would take too long.
            format!("\\set y random_{distribution}(:a, :b, 2 + abs(:x))"),
            "\\set y int(:x) + abs(:a)".into(),
            "\\set y sqrt(:x) * ln(:x) / exp(:x)".into(),
        ] {
            let _ = run(&text, &mut vars);
        }
    }
}

fn whole(text: &str) -> Result<(), TestCaseError> {
    match Script::parse("any", text) {
        Err(e) => {
            let line = text.split('\n').nth(e.line - 1);
            prop_assert!(line.is_some_and(|l| e.column <= l.chars().count() + 1), "{}", e);
        }
        Ok(script) => {
            for (n, command) in script.commands().iter().enumerate() {
                let (Command::If { otherwise: to, .. } | Command::Jump(to)) = command else {
                    continue;
                };
                prop_assert!(*to > n && *to <= script.commands().len());
            }
        }
    }
    Ok(())
}

/// Sent text lacks comments and has longer or shorter variables; positions count characters.
#[test]
fn what_a_server_says_of_a_character_is_found_in_the_script() {
    let text = "-- first\nselect :long, 'é', -- note\n  :x\\; select nosuch, :none;\n";
    let script = script(text);
    let Some(Command::Sql(sql)) = script.commands().first() else { panic!("{script:?}") };
    let mut vars = Vars::predefined(0, 1, 1, 1);
    vars.set("long", Value::Text("1234567890".into()));
    vars.set("x", Value::Int(7));
    let simple = String::from_utf8(sql.render_simple(&vars)).unwrap();
    let (numbered, _) = sql.render_parameters();
    for sent in [&simple, &numbered] {
        let place = |n: usize| match sent == &simple {
            true => sql.place_with_values(n, &vars),
            false => sql.place_with_parameters(n),
        };
        // Every character that also stands in the script maps to its place there.
        let (mut same, mut all) = (0, 0);
        for (n, c) in sent.chars().enumerate() {
            let at = place(n + 1).unwrap();
            all += 1;
            same += usize::from(text[at..].starts_with(c));
            let in_value = text[at..].starts_with(':');
            assert!(in_value || text[at..].starts_with(c), "{n} {c:?} of {sent:?} at {at}");
        }
        assert!(same > all / 2, "{same} of {all}");
        let nosuch = sent.chars().count() - sent[sent.find("nosuch").unwrap()..].chars().count();
        assert_eq!(script.place(place(nosuch + 1).unwrap()), (3, 15), "{sent}");
        // For an unexpected end, the server reports the position after the last character.
        let end = script.place(place(sent.chars().count() + 1).unwrap());
        assert_eq!(end, (3, 28), "{sent}");
        assert_eq!(place(sent.chars().count() + 2), None);
        assert_eq!(place(0), None);
    }
}
