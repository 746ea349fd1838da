//! Queries to the kernel other than files. Each is a function that uses
//! [`Root::ask`](crate::Root::ask), so that a snapshot can answer it too.

pub mod access;
pub mod echo;
pub mod ethnl;
pub mod ethtool;
pub mod genl;
pub mod netdev;
pub mod netlink;
pub mod netns;
pub mod owners;
pub mod rtnl;
pub mod sock_diag;

/// A name (of an interface, say) as one part of an answer's key: letters, digits, `-`, `_` and
/// `.` stay, everything else and a part of dots alone is percent-encoded, so that no name
/// leaves its folder or meets another.
pub fn key_part(name: &str) -> String {
    let dots = name.bytes().all(|b| b == b'.');
    name.bytes().fold(String::with_capacity(name.len()), |mut key, b| {
        if b.is_ascii_alphanumeric() || b"-_".contains(&b) || (b == b'.' && !dots) {
            key.push(char::from(b));
        } else {
            key.push_str(&format!("%{b:02X}"));
        }
        key
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_part_is_one_safe_part_and_tells_names_apart() {
        assert_eq!(key_part("eth0.100"), "eth0.100");
        assert_eq!(key_part("veth-a_b"), "veth-a_b");
        assert_eq!(key_part(".."), "%2E%2E");
        assert_eq!(key_part("a/b%"), "a%2Fb%25");
        assert_eq!(key_part("ä@x"), "%C3%A4%40x");
    }
}
