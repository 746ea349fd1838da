//! The first screen: what to type next, for whoever typed `netwright` alone.

/// What to type next, in at most 80 columns. `root`: whether this user is root already.
pub fn screen(root: bool) -> String {
    let (sudo, pad, without) = match root {
        true => ("", "     ", ""),
        false => ("sudo ", "", " Without sudo it\nruns too, and names what root would add."),
    };
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "netwright {version}: finds what limits this host's network, and what to change.

Type next:
  {sudo}netwright doctor{pad}                  # 5 s; changes nothing, sends nothing

Then:
  netwright inspect                      # the packet path: NIC, queue, IRQ, CPU
  {sudo}netwright watch{pad}                   # live: softirqs, waits, drops; q quits
  netwright snapshot -o host.tar.zst     # a file for `netwright doctor --root`
  netwright --help                       # all commands
  netwright help units                   # or exit-codes, secrets, placement …

Nothing about this host is ever sent to anyone.{without}
"
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn it_fits_half_a_screen_and_each_command_on_it_works() {
        for root in [false, true] {
            let text = screen(root);
            let wide: Vec<_> = text.lines().filter(|l| l.chars().count() > 80).collect();
            assert!(wide.is_empty() && text.lines().count() <= 20, "{text}");
            let mut seen = vec![];
            for line in text.lines().filter_map(|l| l.strip_prefix("  ")) {
                let (command, about) = line.split_once('#').expect("a comment");
                let command = command.trim();
                if command.is_empty() {
                    continue;
                }
                assert_eq!(line.find('#'), Some(39), "{line}");
                assert_eq!(command.starts_with("sudo"), !root && needs_root(command), "{line}");
                let words = command.trim_start_matches("sudo ").split_whitespace();
                match Cli::try_parse_from(words) {
                    Err(e) if e.use_stderr() => panic!("{command}: {e}"),
                    _ => seen.push(about.to_owned()),
                }
            }
            assert_eq!(seen.len(), 6, "{seen:?}");
        }
    }

    /// Root sees more with these.
    fn needs_root(command: &str) -> bool {
        ["doctor", "watch"].iter().any(|c| command.ends_with(c))
    }
}
