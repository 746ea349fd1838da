//! Tests of the script language of `measure pg` against the real pgbench.

use std::{fmt::Write, process::Output, sync::OnceLock};

use crate::support::postgres::{Postgres, Setup};
use workloads::pg::script::{Command, Rng, Script, Value, Vars};

#[test]
fn a_postgresql_of_the_tests_own_starts_again_and_asks_for_passwords_where_asked_to() {
    let mut server = Postgres::with(&Setup {
        hba: "host all all 127.0.0.1/32 scram-sha-256",
        ..Setup::default()
    });
    server.sql("create role guest login password 'secret'; create table kept as select 7 as n");
    let ask = |password: &str| {
        let url = server.url("guest");
        let mut psql = server.tool("psql");
        psql.env("PGPASSWORD", password).args([&url, "-XAtc", "select current_user"]);
        psql.output().unwrap()
    };
    assert_eq!(ask("secret").stdout, b"guest\n");
    assert!(String::from_utf8_lossy(&ask("wrong").stderr).contains("password"));
    server.stop();
    server.run();
    assert_eq!(server.sql("select n from kept"), "7\n");
    let folder = server.folder().to_owned();
    drop(server);
    assert!(!folder.exists());
}

/// One server for all tests that only need one; it ends with this process.
fn server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(Postgres::start)
}

/// An expression's value by pgbench and by this program, as text; or that it has none.
type Outcome = Result<String, String>;

/// Ours, with `:seed` 42.
fn ours(expression: &str) -> Outcome {
    let text = format!("\\set x {expression}\n");
    let script = Script::parse("test", &text).map_err(|e| e.to_string())?;
    let mut vars = Vars::predefined(0, 1, 42, 42);
    for (name, value) in TEXTS {
        vars.set(name, Value::Text(value.into()));
    }
    match script.commands() {
        [Command::Set { expr, .. }] => Ok(expr.eval(&vars, &mut Rng::new(1))?.to_string()),
        other => panic!("{expression}: {other:?}"),
    }
}

/// Variables that are given as text.
const TEXTS: [(&str, &str); 4] = [("t", "yes"), ("i", "-17"), ("d", "2.5e1"), ("bad", "12x")];

/// pgbench's values of many expressions, which must all have one.
fn theirs(server: &Postgres, expressions: &[&str]) -> Vec<String> {
    let lines = expressions.iter().enumerate();
    let text = lines.fold(String::new(), |mut text, (n, e)| {
        writeln!(text, "\\set x {e}\nselect {n} as n, ':x' as x;").unwrap();
        text
    });
    server.sql("create table if not exists said (n int, x text); truncate said");
    let text = text.replace("select ", "insert into said select ");
    let out = pgbench(server, &text, &[]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    server.sql("select x from said order by n").lines().map(str::to_owned).collect()
}

fn pgbench(server: &Postgres, script: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("script");
    std::fs::write(&path, script).unwrap();
    let mut command = server.tool("pgbench");
    for (name, value) in TEXTS {
        command.arg("-D").arg(format!("{name}={value}"));
    }
    command.args(["-D", "default_seed=42", "-n", "-t", "1"]).args(args);
    command.arg("-f").arg(path).output().unwrap()
}

#[test]
fn expressions_have_the_values_that_pgbench_gives_them() {
    let server = server();
    let mut all: Vec<String> = [
        "1 + 2 * 3 - 4 / 2 % 2",
        "-2 * -3",
        "~ 1 + 2",
        "1 * ~ 2 + 3",
        "~1 | 2",
        "1 << 2 + 1",
        "1 | 2 # 3 & 6",
        "1 | 2 = 3",
        "not 1 = 2 and true",
        "not null is null",
        "1 = 1 is true",
        "5 > 4 or 1/0 = 1",
        "false and 1/0 = 1",
        "null and false",
        "null or true",
        "true and null",
        "1 isnull",
        "null notnull",
        "1 is not null",
        "1 is null is null",
        "2 + 1 isnull is false",
        "true is false",
        "1 is true",
        "1.0 is not false",
        "-9223372036854775808",
        "- -5",
        "+5 - +3",
        "case when 0 then 1 when 2 then 3 else 4 end",
        "case when null then 1 end",
        "case when 0.0 then 1 when :t then 2 end",
        "10 / 4",
        "-10 / 4",
        "10 / 4.0",
        "1.0 / 0",
        "-1 / 0.0",
        "sqrt(-1)",
        "ln(0)",
        "-7 % 3",
        "7 % -3",
        "5 % -1",
        "7.6 % 2",
        "5.5 + 1",
        "5 - 1.5",
        "1e3 * 2",
        ".5 + 1.",
        "int(2.5) + int(3.5)",
        "int(-2.5)",
        "int(5.4 + 3.8)",
        "double(5432)",
        "greatest(1, 2.5, 2)",
        "greatest(1, 2, 3)",
        "least(3)",
        "least(5, 4, 3.2, 2.1)",
        "debug(null)",
        "debug(5 > 4)",
        "abs(-3.5)",
        "abs(-7)",
        "abs(null)",
        "pi()",
        "mod(7, 4)",
        "mod(54, 32)",
        "exp(1)",
        "ln(2.718281828459045)",
        "sqrt(2)",
        "pow(2, 10)",
        "power(2.0, 0.5)",
        "pow(-2, 3)",
        "sqrt(2.0e100)",
        "1.0 / 3",
        "0.1 + 0.2",
        "1e15 + 0.5",
        "123456789012345678 * 1.0",
        "1e-5 * 1",
        "0.0001 * 1",
        "-0.0",
        "1 <> 1",
        "1 != 2",
        "2 >= 2.0",
        "1.5 < 2",
        ":i + 1",
        ":d * 2",
        ":t and not :t",
        ":client_id",
        ":scale",
        "-8 >> 1",
        "1 << 62",
        "1 << 63",
        "case when 1 = 1 then 'x' end",
    ]
    .map(str::to_owned)
    .to_vec();
    // The last is an error in both.
    assert!(ours(&all.pop().unwrap()).is_err());
    for n in [0i64, 1, -1, 42, 5432, i64::MAX, i64::MIN + 1, 0x1234_5678_9abc_def0] {
        for f in ["hash", "hash_murmur2", "hash_fnv1a"] {
            all.push(format!("{f}({n})"));
            all.push(format!("{f}({n}, {n})"));
            all.push(format!("{f}({n}, 0)"));
        }
        for size in [1, 2, 3, 4, 10, 1000, 1 << 40, i64::MAX] {
            all.push(format!("permute({n}, {size})"));
            all.push(format!("permute({n}, {size}, {n})"));
        }
    }
    let expressions: Vec<&str> = all.iter().map(String::as_str).collect();
    let theirs = theirs(server, &expressions);
    assert_eq!(theirs.len(), expressions.len());
    let differ: Vec<_> = expressions
        .iter()
        .zip(theirs)
        .filter(|(e, theirs)| ours(e).as_ref() != Ok(theirs))
        .map(|(e, theirs)| format!("{e}: pgbench {theirs}, here {:?}", ours(e)))
        .collect();
    assert!(differ.is_empty(), "{differ:#?}");
}

#[test]
fn what_pgbench_refuses_is_refused_with_its_words() {
    let server = server();
    // Expressions that fail when computed, with the same message.
    for expression in [
        "1 / 0",
        "1 % 0",
        "9223372036854775807 + 1",
        "-9223372036854775807 - 2",
        "9223372036854775807 * 2",
        "-9223372036854775808 / -1",
        ":nothing",
        "1 and true",
        "1 + true",
        "not 1",
        "random(2, 1)",
        "random(-1, 9223372036854775807)",
        "random_zipfian(1, 9, 1.0)",
        "random_gaussian(1, 9, 1.9)",
        "random_exponential(1, 9, 0)",
        "permute(1, 0)",
        ":bad + 1",
        "int(true)",
        "double(false)",
        "true + 1.0",
    ] {
        let out = pgbench(server, &format!("\\set x {expression}\nselect :x;\n"), &[]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let why = ours(expression).expect_err(expression);
        assert!(said.contains(&why), "{expression}: {why:?} is not in {said}");
    }
    // Invalid scripts.
    for text in [
        "\\set x 1 +",
        "\\set x 1 < 2 < 3",
        "\\set x foo(1)",
        "\\set x mod(1)",
        "\\set x hash()",
        "\\set x 9223372036854775808",
        "\\set x -(9223372036854775808)",
        "\\set x 1e999",
        "\\set x",
        "\\set",
        "\\nothing",
        "\\sleep",
        "\\sleep 1 h",
        "\\sleep 1.5",
        "\\sleep 1 s now",
        "\\if true",
        "\\endif",
        "\\else",
        "\\if 1\n\\else\n\\elif 1\n\\endif",
        "\\gset",
        "select 1 as a \\gset\n\\gset",
        "\\set x case end",
        "\\set x (1",
        "\\set x 1)",
        "\\set x #1",
        "\\set x 'a'",
        "\\set x 1 is 2",
        "\\set x least()",
        "\\set x permute(1)",
    ] {
        let script = format!("\\set y 1\n{text}\n");
        assert!(!pgbench(server, &script, &[]).status.success(), "pgbench takes {text:?}");
        assert!(Script::parse("test", &script).is_err(), "{text:?}");
    }
}

#[test]
fn random_numbers_are_those_of_pgbench() {
    let server = server();
    let draws = [
        "random(1, 1000000)",
        "random(-9223372036854775807, -2)",
        "random(5, 5)",
        "random_zipfian(1, 1000, 1.07)",
        "random_zipfian(1, 10, 3.5)",
        "random_gaussian(1, 1000, 2.5)",
        "random_exponential(1, 1000, 5)",
        "random(1, 10) > random(1, 100)",
    ];
    let mut text = String::new();
    for n in 0..20 {
        for (i, draw) in draws.iter().enumerate() {
            writeln!(text, "\\set x {draw}\ninsert into drawn values ({}, ':x');", n * 100 + i)
                .unwrap();
        }
    }
    server.sql("create table drawn (n int, x text)");
    let out = pgbench(server, &text, &["--random-seed=5"]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let theirs = server.sql("select x from drawn order by n");
    // pgbench seeds its only client with the first number of its seeded generator.
    let script = Script::parse("test", &text).unwrap();
    let (mut vars, mut rng) = (Vars::default(), Rng::new(Rng::new(5).next_u64()));
    let mut ours = vec![];
    for command in script.commands() {
        if let Command::Set { expr, .. } = command {
            let value = expr.eval(&vars, &mut rng).unwrap();
            ours.push(value.to_string());
            vars.set("x", value);
        }
    }
    assert_eq!(theirs.lines().collect::<Vec<_>>(), ours);
}

#[test]
fn statements_are_cut_and_filled_in_as_pgbench_does() {
    let server = server();
    server.sql("create table got (n serial, x text)");
    let script = "\\set a 1 + \\\n  1\n\
                  insert into got(x) values ('a :a;' -- ; :a '\n || \"lower\"('B;')); \
                  insert into got(x) select E'\\';' || $$;:a$$ /* ; */ || (select 1;);\n\
                  \\set b null\n\
                  insert into got(x) values (coalesce(:b, 'none') || ':zz' || :a::text || '12:30');\n\
                  insert into got(x) values ('one') \\; insert into got(x) values ('two');\n\
                  select 7 as p, 'text' as q \\gset r_\n\
                  insert into got(x) values (:r_p || ':r_q')\n\
                  \\if :r_p = 7\ninsert into got(x) values ('seven')\n\\elif 1/0\nx;\n\\else\ny;\n\\endif\n\
                  insert into got(x) values ('end')";
    let script = script.replace("(select 1;)", "(select '(;)')");
    let out = pgbench(server, &script, &[]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let theirs = server.sql("select x from got order by n; truncate got");
    // The same statements, with the row of \gset known beforehand.
    let script = Script::parse("test", &script).unwrap();
    let (mut vars, mut rng, mut at) = (Vars::default(), Rng::new(0), 0);
    while let Some(command) = script.commands().get(at) {
        at += 1;
        match command {
            Command::Sql(sql) => {
                server.sql(&String::from_utf8(sql.render_simple(&vars)).unwrap());
            }
            Command::Set { name, expr } => {
                let value = expr.eval(&vars, &mut rng).unwrap();
                vars.set(name, value);
            }
            Command::Gset { prefix } => {
                vars.set(&format!("{prefix}p"), Value::Text("7".into()));
                vars.set(&format!("{prefix}q"), Value::Text("text".into()));
            }
            Command::If { condition, otherwise } => {
                if !condition.eval(&vars, &mut rng).unwrap().is_true().unwrap() {
                    at = *otherwise;
                }
            }
            Command::Jump(to) => at = *to,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(server.sql("select x from got order by n"), theirs);
    assert!(theirs.ends_with("seven\nend\n"), "{theirs}");
}
