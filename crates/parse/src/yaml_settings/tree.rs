//! A YAML text as a tree whose nodes know their lines. Bounded in depth and number of nodes; an
//! alias is a node without content, so that no text grows by being read.

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::ParseError;

/// A node and the line of its first character, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub line: u32,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The text; whether its lines are those of the file (`|`).
    Text(String, bool),
    List(Vec<Node>),
    /// Keys and values, in order.
    Map(Vec<(Node, Node)>),
    Alias,
}

const DEEPEST: usize = 64;
const MOST_NODES: usize = 200_000;

impl Node {
    pub fn text(&self) -> Option<&str> {
        match &self.what {
            What::Text(text, _) => Some(text),
            _ => None,
        }
    }

    pub fn list(&self) -> &[Node] {
        match &self.what {
            What::List(all) => all,
            _ => &[],
        }
    }

    pub fn map(&self) -> &[(Node, Node)] {
        match &self.what {
            What::Map(all) => all,
            _ => &[],
        }
    }

    /// The value of a key of a map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.map().iter().find(|(k, _)| k.text() == Some(key)).map(|(_, v)| v)
    }
}

/// A list or map that is not complete yet.
struct Open {
    line: u32,
    is_map: bool,
    nodes: Vec<Node>,
}

impl Open {
    fn close(self) -> Node {
        let what = if self.is_map {
            let mut nodes = self.nodes.into_iter();
            let mut pairs = Vec::new();
            while let (Some(key), Some(value)) = (nodes.next(), nodes.next()) {
                pairs.push((key, value));
            }
            What::Map(pairs)
        } else {
            What::List(self.nodes)
        };
        Node { line: self.line, what }
    }
}

/// The documents of a text.
///
/// # Errors
/// It is no YAML, or nests too deep or has too many nodes.
pub fn documents(text: &str) -> Result<Vec<Node>, ParseError> {
    let error = |line: usize, what: &'static str| ParseError::new(line, what, text.as_bytes());
    let mut open: Vec<Open> = Vec::new();
    let mut done = Vec::new();
    let mut count = 0;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|e| error(e.marker().line(), "YAML"))?;
        let at = span.start.line();
        let line = u32::try_from(at).unwrap_or(u32::MAX);
        count += 1;
        if count > MOST_NODES || open.len() > DEEPEST {
            return Err(error(at, "YAML of less depth and fewer nodes"));
        }
        let node = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let is_map = matches!(event, Event::MappingStart(..));
                open.push(Open { line, is_map, nodes: vec![] });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(complete) => complete.close(),
                None => continue,
            },
            Event::Scalar(text, style, ..) => {
                let own_lines = style == ScalarStyle::Literal;
                Node { line, what: What::Text(text.into_owned(), own_lines) }
            }
            Event::Alias(_) => Node { line, what: What::Alias },
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.nodes.push(node),
            None => done.push(node),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_file() {
        let text = "a: 1\nb:\n  - x\n  - c: |\n      one\n      two\n";
        let all = documents(text).unwrap();
        let list = all[0].get("b").unwrap().list();
        assert_eq!((list[0].line, list[0].text()), (3, Some("x")));
        let block = list[1].get("c").unwrap();
        assert_eq!(block.text(), Some("one\ntwo\n"));
        assert!((4..=5).contains(&block.line), "{}", block.line);
    }

    #[test]
    fn what_is_too_much_is_refused() {
        assert!(documents(&"[".repeat(10_000)).is_err());
        assert!(documents("a: [1").is_err());
        assert!(documents(&"- 1\n".repeat(MOST_NODES + 1)).is_err());
    }
}
