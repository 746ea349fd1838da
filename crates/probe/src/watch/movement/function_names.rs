//! Names of the kernel's functions by address.

use std::collections::{BTreeMap, BTreeSet};

use model::Reading;
use parse::kallsyms::Functions;

use crate::{Root, error::reading};

const SYMBOLS: &str = "/proc/kallsyms";
const MODULES: &str = "/proc/modules";

/// What is known so far. The list of symbols is read with the first address, and once more where a
/// module came or went and an address is not the kernel's own.
#[derive(Debug, Default)]
pub struct FunctionNames {
    /// `None`: not read yet.
    functions: Option<Reading<Functions>>,
    /// The modules of the time when it was read, with their addresses.
    modules: BTreeSet<(String, String)>,
    names: BTreeMap<u64, Reading<String>>,
}

impl FunctionNames {
    /// Finds the names of these addresses.
    pub fn find(&mut self, root: &Root, addresses: impl Iterator<Item = u64>) {
        for address in addresses {
            if !self.names.contains_key(&address) {
                let name = self.read(root, address);
                self.names.insert(address, name);
            }
        }
    }

    /// The name of an address that was looked for.
    pub fn of(&self, address: u64) -> Option<Reading<String>> {
        self.names.get(&address).cloned()
    }

    fn read(&mut self, root: &Root, address: u64) -> Reading<String> {
        let own = matches!(&self.functions, Some(Reading::Known(all)) if all.is_own(address));
        if !own {
            let modules = modules(root);
            if self.functions.is_none() || modules != self.modules {
                self.modules = modules;
                self.functions = None;
            }
        }
        let all = self.functions.get_or_insert_with(|| symbols(root));
        all.as_ref().and_then(|all| {
            let hidden =
                || Reading::Absent(format!("{SYMBOLS}: no address (kernel.kptr_restrict)"));
            all.at(address).map_or_else(hidden, Reading::Known)
        })
    }
}

fn symbols(root: &Root) -> Reading<Functions> {
    let mut all = Functions::default();
    let whole = root.pieces(SYMBOLS, &mut |piece| all.take(piece));
    reading(whole).map(|()| all.sorted())
}

/// Names and addresses; a line has counts of uses between them.
fn modules(root: &Root) -> BTreeSet<(String, String)> {
    let text = root.read(MODULES).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let of = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        Some((words.next()?.to_owned(), words.nth(4)?.to_owned()))
    };
    text.lines().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_symbols_are_read_once_and_again_for_a_new_module() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc")).unwrap();
        let put = |name: &str, text: &str| {
            std::fs::write(tree.path().join("proc").join(name), text).unwrap();
        };
        let root = Root::open(tree.path()).unwrap();
        let mut names = FunctionNames::default();
        let mut of = |address: u64| {
            names.find(&root, [address].into_iter());
            names.of(address).unwrap()
        };
        let own = "ffffffff81000000 T ip_rcv\nffffffff81000200 t udp_rcv\n";
        put("kallsyms", &format!("{own}ffffffffc0000000 t veth_xmit\t[veth]\n"));
        put("modules", "veth 45056 0 - Live 0xffffffffc0000000\n");
        assert_eq!(of(0xffff_ffff_8100_0010), Reading::Known("ip_rcv".to_owned()));
        // Neither another place of the kernel nor one of a known module, nor another count of uses.
        put("kallsyms", "");
        put("modules", "veth 45056 7 - Live 0xffffffffc0000000\n");
        assert_eq!(of(0xffff_ffff_8100_0200), Reading::Known("udp_rcv".to_owned()));
        assert_eq!(of(0xffff_ffff_c000_0010), Reading::Known("veth_xmit".to_owned()));
        let later = "ffffffffc0009000 t nft_do_chain\t[nf_tables]\n";
        put("kallsyms", &format!("{own}{later}"));
        put("modules", "nf_tables 36864 1 - Live 0xffffffffc0009000\n");
        assert_eq!(of(0xffff_ffff_c000_9010), Reading::Known("nft_do_chain".to_owned()));
        assert_eq!(of(0xffff_ffff_c000_0010), Reading::Known("veth_xmit".to_owned()), "as found");
    }

    #[test]
    fn hidden_addresses_and_a_missing_list_are_said() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tree.path().join("proc")).unwrap();
        let root = Root::open(tree.path()).unwrap();
        let of = || {
            let mut names = FunctionNames::default();
            names.find(&root, [0xffff_ffff_8100_0010].into_iter());
            names.of(0xffff_ffff_8100_0010).unwrap()
        };
        assert!(of().why_not().unwrap().contains("not there"));
        std::fs::write(tree.path().join("proc/kallsyms"), "0000000000000000 T ip_rcv\n").unwrap();
        assert!(of().why_not().unwrap().contains("kptr_restrict"));
    }
}
