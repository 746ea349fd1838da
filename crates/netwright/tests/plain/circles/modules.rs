//! The modules of a crate, and the targets of paths in their code.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::{Path, PathBuf},
};

/// How often an import may lead to another import.
pub const MOST_HOPS: usize = 9;

/// A file's module without `#[cfg(test)]` code.
#[derive(Default)]
pub struct Module {
    pub file: PathBuf,
    pub parent: Option<usize>,
    children: BTreeMap<String, usize>,
    defines: BTreeSet<String>,
    /// The imported names, with their paths.
    imports: BTreeMap<String, Vec<String>>,
    /// The modules of glob imports.
    globs: Vec<Vec<String>>,
    /// Every path in the code.
    pub mentions: Vec<Vec<String>>,
}

/// The tokens of Rust code: names, `::` and single characters, without comments and literals.
fn tokens(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let named = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let past = |from: usize, end: &str| {
        text[from..].find(end).map_or(text.len(), |n| from + n + end.len())
    };
    let mut tokens = vec![];
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match rest[0] {
            b'/' if rest.starts_with(b"//") => at = past(at, "\n"),
            b'/' if rest.starts_with(b"/*") => at = past(at, "*/"),
            b'"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                at += 1;
            }
            // A character literal, or else a lifetime.
            b'\'' if rest.get(1) == Some(&b'\\') => at = past(at + 3, "'"),
            b'\'' => {
                let wide = text[at + 1..].chars().next().map_or(1, char::len_utf8);
                let lifetime = rest[1..].iter().take_while(|b| named(**b)).count();
                at += if rest.get(1 + wide) == Some(&b'\'') { wide + 2 } else { 1 + lifetime };
            }
            b if named(b) => {
                let end = at + rest.iter().position(|b| !named(*b)).unwrap_or(rest.len());
                let name = &text[at..end];
                let hashes = bytes[end..].iter().take_while(|b| **b == b'#').count();
                at = end;
                if matches!(name, "r" | "br") && bytes.get(end + hashes) == Some(&b'"') {
                    at = past(end + hashes + 1, &format!("\"{}", "#".repeat(hashes)));
                } else {
                    tokens.push(name);
                }
            }
            b':' if rest.starts_with(b"::") => {
                tokens.push("::");
                at += 2;
            }
            b if b.is_ascii_graphic() => {
                tokens.push(&text[at..=at]);
                at += 1;
            }
            _ => at += 1,
        }
    }
    tokens
}

/// The end of the item that begins at `at`: after its `;` or its block.
fn item_end(tokens: &[&str], at: usize) -> usize {
    let mut depth = 0;
    for (n, token) in tokens.iter().enumerate().skip(at) {
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        // After an attribute's bracket the item goes on.
        if depth < 0 || depth == 0 && matches!(*token, ";" | "}") {
            return n + 1;
        }
    }
    tokens.len()
}

fn without_tests(tokens: &[&str]) -> Vec<String> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = vec![];
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].starts_with(&TEST) {
            at = item_end(tokens, at);
        } else {
            kept.push(tokens[at].to_owned());
            at += 1;
        }
    }
    kept
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The paths of a `use` at `at`, each with its imported name (`*`: the whole module).
fn use_tree(
    tokens: &[String],
    at: &mut usize,
    before: &[String],
    found: &mut Vec<(Vec<String>, String)>,
) {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match token.as_str() {
            "::" => continue,
            "{" => {
                while tokens.get(*at).is_some_and(|t| t != "}") {
                    use_tree(tokens, at, &path, found);
                    *at += usize::from(tokens.get(*at).is_some_and(|t| t == ","));
                }
                *at += 1;
                return;
            }
            "*" => return found.push((path, "*".into())),
            "self" if !path.is_empty() => {}
            name => path.push(name.into()),
        }
        match tokens.get(*at).map(String::as_str) {
            Some("::") => {}
            Some("as") => {
                let alias = tokens[*at + 1].clone();
                *at += 2;
                return found.push((path, alias));
            }
            _ => {
                let name = path.last().cloned().unwrap_or_default();
                return found.push((path, name));
            }
        }
    }
}

/// A path as it is written at the file's top level, from inside this many modules.
fn from_file(mut path: Vec<String>, within: usize) -> Vec<String> {
    let supers = path[..path.len() - 1].iter().take(within).take_while(|s| *s == "super").count();
    path.drain(..supers);
    path
}

/// Reads `module` from its code; returns the files that it declares.
fn read(module: &mut Module, code: &[String]) -> Vec<String> {
    const ITEMS: [&str; 10] =
        ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules", "mod"];
    let mut declared = vec![];
    // The depths of inline modules: there `super` is the file's own module.
    let (mut depth, mut within) = (0, vec![]);
    let mut at = 0;
    while at < code.len() {
        let next = |n: usize| code.get(at + n).map_or("", String::as_str);
        match next(0) {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                within.retain(|begin| *begin < depth + 1);
            }
            "mod" if next(2) == ";" => declared.push(next(1).to_owned()),
            "mod" if next(2) == "{" => {
                within.push(depth + 1);
                module.defines.insert(next(1).to_owned());
            }
            "use" => {
                let mut found = vec![];
                at += 1;
                use_tree(code, &mut at, &[], &mut found);
                for (path, name) in found {
                    let path = from_file(path, within.len());
                    module.mentions.push(path.clone());
                    match name.as_str() {
                        "*" => module.globs.push(path),
                        _ => drop(module.imports.insert(name, path)),
                    }
                }
                continue;
            }
            item if ITEMS.contains(&item) => {
                let skip = if next(1) == "!" { 2 } else { 1 };
                module.defines.insert(next(skip).to_owned());
            }
            name if is_name(name) && next(1) == "::" => {
                let mut path = vec![name.to_owned()];
                while code.get(at + 1).is_some_and(|t| t == "::")
                    && code.get(at + 2).is_some_and(|t| is_name(t))
                {
                    path.push(code[at + 2].clone());
                    at += 2;
                }
                module.mentions.push(from_file(path, within.len()));
            }
            _ => {}
        }
        at += 1;
    }
    declared
}

/// The modules of a crate, its root first.
pub fn modules(root: &Path) -> Vec<Module> {
    let mut all: Vec<Module> = vec![];
    let mut open = VecDeque::from([(root.to_owned(), None, String::new())]);
    while let Some((file, parent, name)) = open.pop_front() {
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let mut module = Module { parent, ..Module::default() };
        let declared = read(&mut module, &without_tests(&tokens(&text)));
        let id = all.len();
        let folder = match file.file_stem().unwrap().to_str().unwrap() {
            "lib" | "main" | "mod" => file.parent().unwrap().to_owned(),
            _ => file.with_extension(""),
        };
        for child in declared {
            let beside = folder.join(format!("{child}.rs"));
            let inside = folder.join(&child).join("mod.rs");
            open.push_back((if beside.exists() { beside } else { inside }, Some(id), child));
        }
        module.file = file;
        all.push(module);
        if let Some(parent) = parent {
            all[parent].children.insert(name, id);
        }
    }
    all
}

/// The module that defines `path` as written in `from`; `None` for a path out of the crate.
pub fn resolve(all: &[Module], from: usize, path: &[String], hops: usize) -> Option<usize> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => walk(all, 0, rest, hops),
        "self" => walk(all, from, rest, hops),
        "super" => walk(all, all[from].parent?, rest, hops),
        _ => has(all, from, first, hops).then(|| walk(all, from, path, hops))?,
    }
}

fn has(all: &[Module], module: usize, name: &str, hops: usize) -> bool {
    let m = &all[module];
    m.children.contains_key(name)
        || m.defines.contains(name)
        || m.imports.contains_key(name)
        || through_glob(all, module, name, hops).is_some()
}

fn through_glob(all: &[Module], module: usize, name: &str, hops: usize) -> Option<usize> {
    let hops = hops.checked_sub(1)?;
    let mut targets = all[module].globs.iter().filter_map(|g| resolve(all, module, g, hops));
    targets.find(|target| *target != module && has(all, *target, name, hops))
}

/// Follows `path` from within `module`, through children, imports and globs.
fn walk(all: &[Module], mut module: usize, path: &[String], hops: usize) -> Option<usize> {
    for (n, name) in path.iter().enumerate() {
        let m = &all[module];
        let last = n + 1 == path.len();
        if name == "super" {
            module = m.parent?;
        } else if let Some(child) =
            m.children.get(name).filter(|_| !last || !m.defines.contains(name))
        {
            module = *child;
        } else if m.defines.contains(name) || hops == 0 {
            break;
        } else if let Some(import) = m.imports.get(name).filter(|i| i[0] != *name) {
            let path: Vec<String> = import.iter().chain(&path[n + 1..]).cloned().collect();
            return resolve(all, module, &path, hops - 1);
        } else if let Some(target) = through_glob(all, module, name, hops) {
            return walk(all, target, &path[n..], hops - 1);
        } else {
            break;
        }
    }
    Some(module)
}
