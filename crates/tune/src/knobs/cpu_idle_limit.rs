//! `cpu.N.idle_limit`: bars idle states with a longer exit latency.

use model::Nanos;

use crate::{
    cpu_attribute::CpuAttribute,
    knob::{Kind, Refusal, usage},
};

/// **Source**: `/sys/devices/system/cpu/cpuN/power/pm_qos_resume_latency_us`. Unlike
/// `/dev/cpu_dma_latency`, it stays without a process that holds a file open. In the kernel's file
/// `0` means no limit, and `n/a` means no wake-up latency at all is allowed.
pub const KIND: Kind = Kind {
    name: "cpu_idle_limit",
    spelling: "cpu.N.idle_limit=TIME|none|poll",
    parse: |target| FILE.at(target),
};

static FILE: CpuAttribute = CpuAttribute {
    setting: "idle_limit",
    shared: None,
    disturbs: None,
    sets: "idle states",
    unit: "us",
    judge: |_, _, wanted| judge(wanted),
    show,
    kernel,
};

fn judge(wanted: &str) -> Result<String, Refusal> {
    match wanted {
        "none" => return Ok("none".into()),
        "poll" | "n/a" => return Ok("poll".into()),
        "0" => {
            return usage("0 means no limit to the kernel: write none, or poll for no wait at all");
        }
        _ => {}
    }
    let us = match (wanted.parse::<u64>(), wanted.parse::<Nanos>()) {
        (Ok(us), _) => Some(us),
        (_, Ok(ns)) if ns.0 % 1000 == 0 => Some(ns.0 / 1000),
        _ => None,
    };
    match us {
        Some(us @ 1..=0x7fff_fffe) => Ok(us.to_string()),
        _ => usage(format!("{wanted:?} is no time in whole microseconds, none or poll")),
    }
}

fn show(exact: &str) -> &str {
    match exact {
        "0" => "none",
        "n/a" => "poll",
        us => us,
    }
}

fn kernel(value: &str) -> &str {
    match value {
        "none" => "0",
        "poll" => "n/a",
        exact => exact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_time_and_zero_is_asked_back() {
        for (wanted, value) in
            [("none", "0"), ("poll", "n/a"), ("10us", "10"), ("10", "10"), ("1ms", "1000")]
        {
            let new = judge(wanted).unwrap();
            assert_eq!(kernel(&new), value);
            assert_eq!(judge(&new).unwrap(), new, "a plan is taken again");
            assert_eq!(show(value), new);
        }
        for bad in ["0", "0us", "10ns", "", "all", "99999999999"] {
            assert!(judge(bad).is_err(), "{bad:?} was taken");
        }
    }
}
