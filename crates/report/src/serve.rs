//! What `serve` says before its first client.

use crate::text::{Line, Page, TextStyle};

/// Where it listens, and for which foreign clients (`iperf3`, `qperf`), if not for our own.
pub fn listening(foreign: Option<&str>, addresses: &[String], look: TextStyle) -> String {
    let mut page = Page::new(look);
    let whom = foreign.map(|f| format!("{f} clients ")).unwrap_or_default();
    page.line(Line::plain(format!("serving {whom}on {}", addresses.join(", "))), 2);
    page.finish()
}

/// The generated secret, in the command of a client. The command is not wrapped, so that it can be
/// copied.
pub fn secret(secret: &str, look: TextStyle) -> String {
    let mut page = Page::new(look);
    page.line(Line::plain("the client needs this secret:"), 2);
    page.raw(&Line::plain(format!("  NETWRIGHT_SECRET={secret} netwright measure …")));
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::golden;

    #[test]
    fn where_it_listens_fits_80_and_120_columns() {
        let addresses = ["[2001:db8:1111:2222:3333:4444:5555:6666]:7471", "192.168.100.200:7471"];
        let mut addresses = addresses.map(str::to_owned).to_vec();
        addresses.push("unix:/run/netwright.sock".into());
        golden!("serve", "serving on [2001:db8:", |style| {
            listening(None, &addresses, style) + &secret("k4nqd7yxw2hdzr5m3v6tbjcp5e", style)
        });
        golden!("serve_iperf3", "serving iperf3 clients on [2001:db8:", |style| {
            listening(Some("iperf3"), &addresses, style)
        });
    }
}
