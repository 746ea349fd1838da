//! The environment that a connection string is interpreted in.

use std::path::PathBuf;

/// Environment of the process; tests supply their own.
pub struct Environment<'a> {
    /// Reads an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a field of the user from this host's user database.
    pub who: &'a dyn Fn(UserName) -> Option<String>,
}

/// A field of the user database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserName {
    Name,
    Home,
}

impl Environment<'_> {
    /// Home directory: `HOME`, else that of the user database, as with libpq.
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
            let environment = Environment { variable: &named, who: &who };
            assert_eq!(environment.home(), Some(PathBuf::from(home)));
        }
    }
}
