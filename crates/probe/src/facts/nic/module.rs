//! A transceiver's own diagnostics: from its memory, or what `ethtool -m` printed.

use model::{Reading, link::Module};
use parse::sff_module::{self, Diagnostics, Layout};

use super::printed::or_printed;
use crate::{
    Root,
    ask::ethnl::{self, ModulePart},
    error::reading,
};

const MODULE: [&str; 3] = ["ethtool -m", "ethtool --module-info", "ethtool --dump-module-eeprom"];

/// The diagnostics of a NIC's transceiver; absent where it has none. The kernel is not asked about an
/// interface without a device: a host has hundreds of them, and each question takes a socket.
pub fn read(root: &Root, nic: &str, has_device: bool) -> Reading<Module> {
    let asked = match root.is_whole() && !has_device {
        true => Reading::absent("no device, so no transceiver"),
        false => asked(root, nic),
    };
    or_printed(asked, root, (&MODULE, nic), |text| sff_module::printed(text).map(module))
}

fn asked(root: &Root, nic: &str) -> Reading<Module> {
    let ask = |part| reading(ethnl::module(root, nic, part));
    let none = "the transceiver has no diagnostics";
    ask(ModulePart::Lower).and_then(|lower| {
        let found = match sff_module::layout(&lower) {
            None => return Reading::absent(none),
            Some(Layout::Sff8472) => ask(ModulePart::SfpDiagnostics)
                .map(|bytes| sff_module::diagnostics(Layout::Sff8472, &bytes)),
            Some(layout) => Reading::Known(sff_module::diagnostics(layout, &lower)),
        };
        found.and_then(|d| d.map_or(Reading::absent(none), |d| Reading::Known(module(d))))
    })
}

fn module(d: Diagnostics) -> Module {
    let of = |value: Option<i32>| {
        value.map_or(Reading::absent("the transceiver does not say"), Reading::Known)
    };
    Module {
        temperature_millicelsius: of(d.temperature_millicelsius),
        high_alarm_millicelsius: of(d.high_alarm_millicelsius),
        alarms: d.alarms,
        warnings: d.warnings,
    }
}
