//! The surroundings that a connection string is read in.

use std::path::PathBuf;

/// The process's surroundings; a test has its own.
pub struct Around<'a> {
    /// A variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// What this host knows of the user.
    pub who: &'a dyn Fn(UserName) -> Option<String>,
}

/// What a host knows of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserName {
    Name,
    Home,
}

impl Around<'_> {
    /// The user's folder: where `HOME` names none, the one that this host knows, as with libpq.
    pub fn home(&self) -> Option<PathBuf> {
        let named = (self.variable)("HOME").filter(|h| !h.is_empty());
        named.or_else(|| (self.who)(UserName::Home)).map(PathBuf::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_where_the_variable_or_else_the_host_says() {
        let who = |what| (what == UserName::Home).then(|| "/of/the/host".to_owned());
        for (variable, home) in
            [(None, "/of/the/host"), (Some(""), "/of/the/host"), (Some("/own"), "/own")]
        {
            let named = |_: &str| variable.map(str::to_owned);
            let around = Around { variable: &named, who: &who };
            assert_eq!(around.home(), Some(PathBuf::from(home)));
        }
    }
}
