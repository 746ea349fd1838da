//! Settings of YAML files: tasks of Ansible, pods of Kubernetes.
//!
//! **Source**: ansible.posix.sysctl, ansible.builtin.command, shell, copy and lineinfile; the pod
//! of Kubernetes (securityContext.sysctls, command, args).

pub mod tree;

use model::lint::{Place, SetLine};

use self::tree::{Node, What};
use crate::{
    ParseError,
    shell_settings::{of_words, parse_from, set_line, sysctl_knob},
};

/// What a YAML file sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct YamlSettings {
    /// In the order of the file.
    pub lines: Vec<SetLine>,
    /// Whether it holds a pod or a task at all.
    pub known: bool,
    /// Texts of ConfigMaps that set something: who reads them is not known. Line and name of each.
    pub config: Vec<(u32, String)>,
}

/// Every setting of the tasks and pods of a file.
///
/// # Errors
/// The file is no YAML.
pub fn parse(bytes: &[u8]) -> Result<YamlSettings, ParseError> {
    let text = String::from_utf8_lossy(bytes);
    let mut found = YamlSettings::default();
    for document in tree::documents(&text)? {
        let is_pod = document.get("apiVersion").is_some() && document.get("kind").is_some();
        found.known |= is_pod;
        walk(&document, is_pod, &mut found);
        if document.get("kind").and_then(Node::text) == Some("ConfigMap") {
            config(&document, &mut found);
        }
    }
    for set in &mut found.lines {
        set.whole = false;
    }
    found.lines.sort_by_key(|s| s.line);
    Ok(found)
}

/// The depth of the tree bounds the recursion.
fn walk(node: &Node, is_pod: bool, found: &mut YamlSettings) {
    if is_pod {
        pod(node, found);
    } else {
        task(node, found);
    }
    for child in node.list() {
        walk(child, is_pod, found);
    }
    for (key, value) in node.map() {
        // A manifest of Kubernetes inside a task of Ansible.
        let inner = matches!(key.text(), Some("definition" | "resource_definition"));
        walk(value, is_pod || inner, found);
    }
}

/// The texts of a ConfigMap that set something.
fn config(map: &Node, found: &mut YamlSettings) {
    for (key, text) in map.get("data").map(Node::map).unwrap_or_default() {
        if let Some(name) = key.text()
            && !script(text, Place::PodCommand).is_empty()
        {
            found.config.push((key.line, name.to_owned()));
        }
    }
}

/// `securityContext` of a pod, and the command of a container. A patch of a pod names no image, and
/// a probe or a hook has a command of its own.
fn pod(node: &Node, found: &mut YamlSettings) {
    for sysctl in node.get("sysctls").map(Node::list).unwrap_or_default() {
        let (Some(name), Some(value)) = (sysctl.get("name"), sysctl.get("value")) else { continue };
        let (Some(key), Some(value)) = (name.text(), value.text()) else { continue };
        if let Some(knob) = sysctl_knob(key) {
            found.lines.push(set_line(name.line, Place::Pod, knob, value, false));
        }
    }
    let words = |key: &str| node.get(key).map(Node::list).unwrap_or_default();
    let all: Vec<&Node> = words("command").iter().chain(words("args")).collect();
    found.lines.extend(argv(&all, Place::PodCommand));
}

/// The settings of a command in words; a script among them keeps its lines.
fn argv(all: &[&Node], place: Place) -> Vec<SetLine> {
    let words: Vec<String> = all.iter().filter_map(|n| n.text()).map(str::to_owned).collect();
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return vec![] };
    if words.len() == all.len()
        && words.len() > 2
        && let [shell, .., _] = words.as_slice()
        && crate::shell_settings::is_shell(shell)
    {
        return script(last, place);
    }
    of_words(&words, first.line, place)
}

/// The settings of a text of shell.
fn script(node: &Node, place: Place) -> Vec<SetLine> {
    let What::Text(text, own_lines) = &node.what else { return vec![] };
    let first = node.line;
    let mut lines = parse_from(text, first, place);
    if !own_lines {
        for line in &mut lines {
            line.line = first;
        }
    }
    lines
}

/// A mapping that is a task: one key is the name of a module.
fn task(node: &Node, found: &mut YamlSettings) {
    for (key, value) in node.map() {
        let Some(name) = key.text() else { continue };
        let module =
            ["ansible.builtin.", "ansible.legacy.", "ansible.posix.", "community.general."]
                .iter()
                .find_map(|p| name.strip_prefix(p))
                .unwrap_or(name);
        let lines = match module {
            "sysctl" => sysctl(node, value),
            "command" | "shell" | "raw" | "script" => command(value),
            "copy" | "blockinfile" | "lineinfile" => written(value),
            _ => continue,
        };
        found.known |= node.get("name").is_some() || !lines.is_empty();
        found.lines.extend(lines);
    }
}

/// `ansible.posix.sysctl`: name and value, or those of each item of a loop.
fn sysctl(task: &Node, module: &Node) -> Vec<SetLine> {
    let inline = module.text().map(pairs).unwrap_or_default();
    let argument = |names: [&str; 2]| {
        let of_map =
            names.iter().find_map(|n| module.get(n)).and_then(|n| Some((n.line, n.text()?)));
        let of_text = || {
            let (_, value) = inline.iter().find(|(k, _)| names.contains(&k.as_str()))?;
            Some((module.line, value.as_str()))
        };
        of_map.or_else(of_text)
    };
    if argument(["state", "state"]).is_some_and(|(_, state)| state == "absent") {
        return vec![];
    }
    let Some((line, name)) = argument(["name", "key"]) else { return vec![] };
    let value = argument(["value", "val"]).map(|(_, v)| v).unwrap_or_default();
    let items = ["loop", "with_items", "with_dict", "with_list"].iter().find_map(|k| task.get(k));
    match (items, item(name)) {
        (Some(items), Some(field)) => each(items, field, item(value), value),
        _ => sysctl_knob(name)
            .map(|knob| vec![set_line(line, Place::Ansible, knob, value, false)])
            .unwrap_or_default(),
    }
}

/// The settings of a loop: a list of maps, or a map of name to value.
fn each(items: &Node, name: &str, value: Option<&str>, constant: &str) -> Vec<SetLine> {
    let one = |key: &Node, set: &str| {
        let knob = sysctl_knob(key.text()?)?;
        Some(set_line(key.line, Place::Ansible, knob, set, false))
    };
    let of_map = items.map().iter().filter_map(|(k, v)| one(k, v.text()?));
    let of_list = items.list().iter().filter_map(|item| {
        if name.is_empty() {
            return one(item, constant);
        }
        let set = value.map_or(Some(constant), |field| item.get(field).and_then(Node::text));
        one(item.get(name)?, set?)
    });
    of_map.chain(of_list).collect()
}

/// The field of `{{ item.FIELD }}`; empty for `{{ item }}` itself.
fn item(text: &str) -> Option<&str> {
    let inside = text.trim().strip_prefix("{{")?.strip_suffix("}}")?.trim();
    let rest = inside.strip_prefix("item")?;
    let field = rest.trim_start_matches(['.', '[', '\'', '"']).trim_end_matches([']', '\'', '"']);
    field.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then_some(field)
}

/// `key=value` words of a module's arguments in one line.
fn pairs(text: &str) -> Vec<(String, String)> {
    let commands = crate::shell_settings::words::commands(text, 1);
    let words = commands.into_iter().flat_map(|c| c.words);
    words.filter_map(|w| w.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))).collect()
}

/// `command`, `shell`: a text, or `cmd`, or `argv`.
fn command(value: &Node) -> Vec<SetLine> {
    if let Some(words) = value.get("argv") {
        return argv(&words.list().iter().collect::<Vec<_>>(), Place::Ansible);
    }
    script(value.get("cmd").or(value.get("_raw_params")).unwrap_or(value), Place::Ansible)
}

/// Text that a task writes into a sysctl file.
fn written(value: &Node) -> Vec<SetLine> {
    // `lineinfile` and `blockinfile` that take the text away.
    if value.get("state").and_then(Node::text) == Some("absent") {
        return vec![];
    }
    let path = ["dest", "path", "name", "destfile"].iter().find_map(|k| value.get(k)?.text());
    if !path.is_some_and(|p| p.contains("sysctl")) {
        return vec![];
    }
    let text = ["content", "block", "line"].iter().find_map(|k| value.get(k));
    text.map(|t| script(t, Place::Ansible)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(text: &str) -> Vec<(u32, String, String)> {
        let all = parse(text.as_bytes()).unwrap().lines;
        all.into_iter().map(|s| (s.line, s.setting, s.value)).collect()
    }

    fn same(text: &str, expected: &[(u32, &str, &str)]) {
        let all = sets(text);
        let all: Vec<_> = all.iter().map(|(l, s, v)| (*l, s.as_str(), v.as_str())).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn tasks_of_ansible() {
        same(
            "- hosts: all\n  tasks:\n    - name: a\n      ansible.posix.sysctl:\n        name: net.core.a\n        value: '1'\n\
            \x20   - sysctl: name=net.core.b value=\"1 2\" state=present\n\
            \x20   - name: away\n      sysctl: {name: net.core.c, state: absent}\n\
            \x20   - shell: |\n        sysctl -w net.core.d=4\n        ethtool -K eth0 gro off\n\
            \x20   - command:\n        argv: [sysctl, -w, net.core.e=5]\n\
            \x20   - name: loop\n      sysctl:\n        name: \"{{ item.key }}\"\n        value: \"{{ item.value }}\"\n      loop:\n\
            \x20       - { key: net.core.f, value: 6 }\n\
            \x20   - lineinfile:\n        path: /etc/sysctl.conf\n        line: net.core.g = 7\n\
            \x20   - lineinfile:\n        path: /etc/sysctl.conf\n        line: net.core.h = 8\n        state: absent\n",
            &[
                (5, "sysctl.net.core.a", "1"),
                (7, "sysctl.net.core.b", "1 2"),
                (11, "sysctl.net.core.d", "4"),
                (12, "nic.eth0.features.rx-gro", "off"),
                (14, "sysctl.net.core.e", "5"),
                (20, "sysctl.net.core.f", "6"),
                (23, "sysctl.net.core.g", "7"),
            ],
        );
    }

    #[test]
    fn pods_of_kubernetes() {
        same(
            "apiVersion: v1\nkind: Pod\nspec:\n  securityContext:\n    sysctls:\n      - name: net.core.somaxconn\n        value: \"1024\"\n\
            \x20 initContainers:\n    - name: i\n      image: busybox\n      command: ['sh', '-c', 'sysctl -w net.core.b=2']\n\
            \x20   - image: busybox\n      command:\n        - sh\n        - -c\n        - |\n          sysctl -w net.core.c=3\n\
            \x20 containers:\n    - image: x\n      command: [sysctl]\n      args: [-w, net/core/d=4]\n",
            &[
                (6, "sysctl.net.core.somaxconn", "1024"),
                (11, "sysctl.net.core.b", "2"),
                (17, "sysctl.net.core.c", "3"),
                (20, "sysctl.net.core.d", "4"),
            ],
        );
    }

    #[test]
    fn other_yaml_has_none() {
        same("version: 3\nservices:\n  a:\n    image: x\n    sysctls:\n      net.core.a: 1\n", &[]);
        assert!(!parse(b"a: b\n").unwrap().known);
    }
}
