//! A section of a file of systemd or NetworkManager.

/// The assignments of a section of a systemd or NetworkManager file.
pub fn section(text: &str, name: &str) -> Vec<String> {
    let mut inside = false;
    let mut all = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[') {
            inside = head.strip_suffix(']') == Some(name);
        } else if inside && line.contains('=') && !line.starts_with(['#', ';']) {
            all.push(line.to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_its_assignments() {
        let text = "[Match]\nName=e*\n\n[Link]\n# why\nMTUBytes=9000\n NamePolicy=keep\n[X]\na=b\n";
        assert_eq!(section(text, "Link"), ["MTUBytes=9000", "NamePolicy=keep"]);
        assert_eq!(section(text, "None"), Vec::<String>::new());
    }
}
