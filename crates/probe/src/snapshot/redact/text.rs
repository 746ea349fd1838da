//! Names within text of any format, recognised by their own form.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Redactor;

/// What stands at a place of the text.
enum TextItem {
    /// Copy this many bytes.
    Keep(usize),
    /// Replace this many bytes.
    Replace(usize, String),
}

/// Whether the bytes are text. Compressed or binary files stay unchanged: an apparent address in
/// one is chance.
pub fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().any(|&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x1b))
}

fn run(bytes: &[u8], of: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&b| !of(b)).unwrap_or(bytes.len())
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// Six or eight pairs of hex digits with the same separator.
fn pairs(bytes: &[u8], separator: u8) -> Option<Vec<u8>> {
    let parts: Vec<&[u8]> = bytes.split(|&b| b == separator).collect();
    let pair = |p: &&[u8]| p.len() == 2 && p.iter().all(u8::is_ascii_hexdigit);
    parts.iter().all(pair).then(|| parts.iter().filter_map(|p| octet(p)).collect())
}

/// Without the full stop or colon of the sentence around it; `2001:db8::` keeps its own.
fn unpunctuated(word: &[u8]) -> &[u8] {
    let end = word.iter().rposition(|&b| b != b'.').map_or(0, |i| i + 1);
    let word = word.get(..end).unwrap_or_default();
    match word.strip_suffix(b":") {
        Some(w) if !w.ends_with(b":") => w,
        _ => word,
    }
}

fn octet(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(text(digits), 16).ok()
}

fn octets(hex: &[u8]) -> Option<Vec<u8>> {
    hex.chunks(2).map(|p| if p.len() == 2 { octet(p) } else { None }).collect()
}

fn joined(bytes: &[u8], separator: &str, like: &[u8]) -> String {
    let upper = like.iter().any(u8::is_ascii_uppercase);
    let pairs: Vec<String> =
        bytes.iter().map(|b| if upper { format!("{b:02X}") } else { format!("{b:02x}") }).collect();
    pairs.join(separator)
}

/// Every MAC written with colons.
pub fn macs(bytes: &[u8]) -> Vec<[u8; 6]> {
    let is_part = |b: u8| b.is_ascii_hexdigit() || b == b':';
    let mut found = Vec::new();
    if !is_text(bytes) {
        return found;
    }
    for word in bytes.split(|&b| !is_part(b)).filter(|w| w.len() == 17) {
        if let Some(Ok(mac)) = pairs(word, b':').map(<[u8; 6]>::try_from) {
            found.push(mac);
        }
    }
    found
}

impl Redactor {
    /// Replaces every name in a text; the rest stays byte for byte.
    pub fn text(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|r| !r.is_empty()) {
            let before = at.checked_sub(1).and_then(|i| bytes.get(i));
            let starts = before.is_none_or(|b| !b.is_ascii_alphanumeric());
            let found = if starts { self.at(rest, before.copied()) } else { TextItem::Keep(1) };
            match found {
                TextItem::Keep(n) => {
                    out.extend(rest.iter().take(n.max(1)));
                    at += n.max(1);
                }
                TextItem::Replace(n, with) => {
                    out.extend(with.bytes());
                    at += n.max(1);
                }
            }
        }
        out
    }

    fn at(&mut self, rest: &[u8], before: Option<u8>) -> TextItem {
        if let Some(found) = self.word(rest).or_else(|| self.home(rest, before)) {
            return found;
        }
        let alnum = run(rest, |b| b.is_ascii_alphanumeric());
        if alnum == 0 && !rest.starts_with(b"::") {
            return TextItem::Keep(1);
        }
        self.address(rest, before)
            .or_else(|| self.uuid(rest))
            .or_else(|| self.hex_word(rest, alnum))
            .unwrap_or(TextItem::Keep(alnum))
    }

    /// The host's own names.
    fn word(&self, rest: &[u8]) -> Option<TextItem> {
        self.words.iter().find_map(|(name, pseudonym)| {
            let head = rest.get(..name.len())?;
            let ends = rest.get(name.len()).is_none_or(|b| !b.is_ascii_alphanumeric());
            (ends && head.eq_ignore_ascii_case(name.as_bytes()))
                .then(|| TextItem::Replace(name.len(), pseudonym.clone()))
        })
    }

    /// The user in `/home/user`; `rest` begins at `home`.
    fn home(&self, rest: &[u8], before: Option<u8>) -> Option<TextItem> {
        let tail = rest.strip_prefix(b"home/").filter(|_| before == Some(b'/'))?;
        let n = run(tail, |b| b.is_ascii_alphanumeric() || b"._-+@".contains(&b) || b >= 0x80);
        let user = tail.get(..n).filter(|u| !u.is_empty())?;
        Some(TextItem::Replace(5 + n, format!("home/user-{}", self.hex("user", user, 8))))
    }

    /// MACs and IP addresses.
    fn address(&mut self, rest: &[u8], before: Option<u8>) -> Option<TextItem> {
        // Within `a.b` or `a:b` this is the middle of something else.
        if before.is_some_and(|b| b == b'.') {
            return None;
        }
        let n = run(rest, |b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
        let word = unpunctuated(rest.get(..n)?);
        let n = word.len();
        if rest.get(n).is_some_and(u8::is_ascii_alphanumeric) {
            return self.quad(rest);
        }
        if let Some(octets) = pairs(word, b':').filter(|p| p.len() > 1) {
            return Some(match self.hardware(&octets) {
                Some(new) => TextItem::Replace(n, joined(&new, ":", word)),
                // The whole of it: the last six bytes of an RSS key are no MAC.
                None => TextItem::Keep(n),
            });
        }
        let colons = word.iter().filter(|&&b| b == b':').count();
        if let Some(v6) = text(word).parse::<Ipv6Addr>().ok().filter(|_| colons >= 2) {
            // What stays, stays as it was written: the `0::` of a cgroup is `::` to the parser.
            let new = self.addresses.v6(v6);
            return Some(if new == v6 {
                TextItem::Keep(n)
            } else {
                TextItem::Replace(n, new.to_string())
            });
        }
        self.bridge_id(word).or_else(|| self.quad(rest))
    }

    /// A hardware address by its length; `None` for other text.
    fn hardware(&self, octets: &[u8]) -> Option<Vec<u8>> {
        if let Ok(mac) = <[u8; 6]>::try_from(octets) {
            return Some(self.addresses.mac(mac).to_vec());
        }
        if let Ok(id) = <[u8; 8]>::try_from(octets) {
            return Some(self.addresses.eui64(id).to_vec());
        }
        // InfiniBand: queue and flags, then a GID with the port's id in its last half.
        let (head, port) = octets.split_at_checked(12)?;
        let port = <[u8; 8]>::try_from(port).ok()?;
        Some([head, &self.addresses.eui64(port)].concat())
    }

    /// `8000.02fc00000001`: a priority and a MAC.
    fn bridge_id(&self, word: &[u8]) -> Option<TextItem> {
        let (priority, mac) = text(word).split_once('.')?;
        if priority.len() != 4 || mac.len() != 12 || mac.contains([':', '.']) {
            return None;
        }
        let mac: [u8; 6] = octets(mac.as_bytes())?.try_into().ok()?;
        let mac = joined(&self.addresses.mac(mac), "", word);
        Some(TextItem::Replace(word.len(), format!("{priority}.{mac}")))
    }

    /// Four decimal numbers, and neither a fifth nor a letter behind them (a version).
    fn quad(&mut self, rest: &[u8]) -> Option<TextItem> {
        let n = run(rest, |b| b.is_ascii_digit() || b == b'.');
        let word = text(rest.get(..n)?);
        let word = word.strip_suffix('.').unwrap_or(word);
        let behind = rest.get(word.len());
        let more = behind == Some(&b'.')
            && rest.get(word.len() + 1).is_some_and(u8::is_ascii_alphanumeric);
        if more || behind.is_some_and(u8::is_ascii_alphabetic) {
            return None;
        }
        let v4: Ipv4Addr = word.parse().ok()?;
        Some(TextItem::Replace(word.len(), self.addresses.v4(v4).to_string()))
    }

    fn uuid(&self, rest: &[u8]) -> Option<TextItem> {
        const LENGTH: usize = 36;
        let word = rest.get(..LENGTH)?;
        let dashes = [8, 13, 18, 23];
        let fits = word
            .iter()
            .enumerate()
            .all(|(i, b)| if dashes.contains(&i) { *b == b'-' } else { b.is_ascii_hexdigit() });
        if !fits || rest.get(LENGTH).is_some_and(u8::is_ascii_alphanumeric) {
            return None;
        }
        let digits = self.hex("id", &plain(word), 32);
        let mut out = String::new();
        for (i, c) in digits.chars().enumerate() {
            if [8, 12, 16, 20].contains(&i) {
                out.push('-');
            }
            out.push(c);
        }
        Some(TextItem::Replace(LENGTH, out))
    }

    /// Ids of machines and containers, MACs without separators, and `enx` with a MAC.
    fn hex_word(&self, rest: &[u8], length: usize) -> Option<TextItem> {
        let word = rest.get(..length)?;
        let (head, digits) = match word.strip_prefix(b"enx") {
            Some(mac) if mac.len() == 12 => ("enx", mac),
            _ => ("", word),
        };
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let new = match digits.len() {
            12 => {
                let mac: [u8; 6] = octets(digits)?.try_into().ok()?;
                if head.is_empty() && !self.macs.contains_key(&mac) {
                    return None;
                }
                joined(&self.addresses.mac(mac), "", digits)
            }
            // All alike is a mask or a filler, not an id.
            32 | 64 if digits.windows(2).any(|w| w.first() != w.last()) => {
                self.hex("id", &plain(digits), digits.len())
            }
            _ => return None,
        };
        Some(TextItem::Replace(length, format!("{head}{new}")))
    }
}

/// The same id with dashes or without, in upper or lower case, has one pseudonym.
fn plain(id: &[u8]) -> Vec<u8> {
    id.iter().filter(|&&b| b != b'-').map(u8::to_ascii_lowercase).collect()
}
