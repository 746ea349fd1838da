//! 47: per-NAPI interrupt deferral and suspension that do not fit the load.
//!
//! **Source**: the kernel's Documentation/networking/napi.rst ("IRQ suspension"). Figures: J. Damato,
//! M. Karsten, "Suspend IRQs during application busy periods" (netdev, November 2024): memcached,
//! 8 queues of a ConnectX-5, at most; base 1,005,592 queries a second.

use model::{
    Confidence, CpuId, Nanos, Severity,
    host::kernel_version,
    napi::{Napi, names},
    nic::Nic,
};

use crate::{
    Case, Rule,
    knob::{advice, change},
    load::{self, Load},
    queues,
    rule::{Draft, Gain, Judgement, Missing, Proposal, clear, need},
    text,
};

pub static RULE: Rule = Rule {
    id: "irq_suspension",
    number: 47,
    title: "interrupt deferral and suspension of each NAPI",
    needs: &["settings of each NAPI (Linux 6.13)", "CPU time and BusyPollRxPackets over a window"],
    explained_by: &["few_channels", "irqs_piled_up", "cloud_allowance"],
    judge,
};

/// Deferral below which the experiment lost throughput: 10 µs −8%, 20 µs −2%, 50 µs +4%.
const SHORT: Nanos = Nanos(50_000);
/// Busy share from which the experiment showed the loss: 95% and more, and none at 89%.
const FULL: f64 = 0.90;
/// The experiment's values, with suspension: +21%.
const DEFER: u32 = 100;
const FLUSH: Nanos = Nanos(20_000);
const SUSPEND: Nanos = Nanos(20_000_000);

const COUNTER: &str = "TcpExt.BusyPollRxPackets";

/// Drivers that keep a NAPI's settings when they create it anew (`netif_napi_add_config`), by the
/// patches "Add support for persistent NAPI config" (6.13; virtio-net: 6.15).
const KEEPS_SETTINGS: [&str; 5] = ["bnxt_en", "mlx4_core", "mlx4_en", "mlx5_core", "virtio_net"];

/// The deferral and suspension settings of one NAPI instance.
struct Setting {
    name: String,
    flush: Nanos,
    defer: u32,
    suspend: Nanos,
}

impl Setting {
    fn defers(&self) -> bool {
        self.flush.0 > 0 && self.defer > 0
    }

    /// `rx-0: defer-hard-irqs 100, gro-flush-timeout 20 µs, irq-suspend-timeout 0 ns`.
    fn text(&self) -> String {
        let Self { name, flush, defer, suspend } = self;
        format!(
            "{name}: defer-hard-irqs {defer}, gro-flush-timeout {flush}, irq-suspend-timeout \
             {suspend}"
        )
    }

    fn change(&self, nic: &Nic, setting: &str, old: u64, new: u64, risk: &str) -> Option<Proposal> {
        let knob = format!("nic.{}.napi.{setting}.{}", nic.name, self.name);
        (old != new).then(|| change(knob, old.to_string(), new.to_string(), risk))
    }

    /// The three values of the experiment.
    fn suspended(&self, nic: &Nic) -> Vec<Proposal> {
        let flush = if self.flush.0 > 0 { self.flush } else { FLUSH };
        let defer = if self.defer > 0 { self.defer } else { DEFER };
        let suspend = if self.suspend > flush { self.suspend } else { SUSPEND.max(flush) };
        let late = "a packet to a program that stops polling waits this long";
        let all = [
            self.change(nic, "defer_hard_irqs", self.defer.into(), defer.into(), KEPT_AWAKE),
            self.change(nic, "gro_flush_timeout", self.flush.0, flush.0, KEPT_AWAKE),
            self.change(nic, "irq_suspend_timeout", self.suspend.0, suspend.0, late),
        ];
        all.into_iter().flatten().collect()
    }
}

const KEPT_AWAKE: &str = "a packet may wait this long for the next poll; more CPU at low load";

fn judge(case: &Case<'_>) -> Vec<Judgement> {
    let polled = |nic: &Nic| match nic.napis.known() {
        Some(napis) if !napis.is_empty() => Ok(true),
        _ => queues::has_device(nic),
    };
    queues::each_nic(case, polled, "no interface with a NAPI is up", |nic| one(case, nic))
}

fn one(case: &Case<'_>, nic: &Nic) -> Result<Judgement, Missing> {
    let name = &nic.name;
    let reported = |napis: &Vec<Napi>| napis.iter().any(|n| n.irq_suspend_timeout_ns.is_known());
    // A distribution may have brought the setting to an older kernel.
    if !nic.napis.known().is_some_and(reported)
        && let Some(kernel) = older_kernel(case)
    {
        let text = format!("does not apply: Linux {kernel} has no suspension of a NAPI (6.13 has)");
        return clear(text, [&case.facts.host.kernel]);
    }
    let napis = need(&format!("NAPI instances of {name}"), &nic.napis)?;
    let settings = settings(name, napis)?;
    let useless = |s: &&Setting| s.suspend.0 > 0 && (!s.defers() || s.suspend <= s.flush);
    let without: Vec<&Setting> = settings.iter().filter(useless).collect();
    if !without.is_empty() {
        return Ok(no_effect(nic, &without));
    }
    let open: Vec<&Setting> = settings.iter().filter(|s| s.suspend.0 == 0).collect();
    if open.is_empty() {
        let on = "suspended while an application polls";
        let text = format!("{name}: the interrupts of {} are {on}", count(settings.len()));
        return clear(text, [&nic.napis]);
    }
    let short: Vec<&Setting> =
        open.iter().filter(|s| s.defers() && s.flush < SHORT).copied().collect();
    let polled = busy_polled_per_s(case);
    let polls = match polled {
        Ok(rate) => rate >= queues::BUSY_NIC_PER_S,
        // It decides only where nothing else does.
        Err(missing) if short.is_empty() => return Err(missing),
        Err(_) => false,
    };
    if short.is_empty() && !polls {
        let text = format!("{name}: no short deferral, and no application polls by itself");
        return clear(text, [&nic.napis, &polled]);
    }
    queues::not_threaded(nic)?;
    let rate = queues::rx_per_s(case, nic)?;
    let (cpu, load) = busiest(case, nic)?;
    if load.busy < FULL || rate < queues::BUSY_NIC_PER_S {
        let load = load.text();
        let text = format!("{}, CPU {cpu} {load}: there is room", queues::rx_text(nic, rate));
        return clear(text, [&nic.napis, &nic.driver]);
    }
    let driver = need(&format!("driver of {name}"), &nic.driver)?;
    if !KEEPS_SETTINGS.contains(&driver.as_str()) {
        return Err(Missing(format!(
            "whether {driver} keeps the settings of {name}'s NAPIs when it creates them anew: not \
             known"
        )));
    }
    let draft = if polls { polling(nic, &open) } else { interfering(nic, &short) };
    let polled = polled.map_or_else(|m| m.0, text::per_s);
    Ok(draft
        .show(format!("packets received by busy polling {}", case.over()), polled, COUNTER)
        .show(format!("received by {name}"), text::per_s(rate), "/sys/class/net")
        .show_load(case, cpu, load)
        .on_nic(name)
        .on_cpus(&[cpu].into_iter().collect())
        .found())
}

/// The kernel's release, where it is known to be older than 6.13.
fn older_kernel<'a>(case: &Case<'a>) -> Option<&'a str> {
    let release = case.facts.host.kernel.known()?;
    (kernel_version(release)? < (6, 13)).then_some(release)
}

/// The settings of the instances that receive.
fn settings(nic: &str, napis: &[Napi]) -> Result<Vec<Setting>, Missing> {
    let by_id = names(napis.iter().map(|n| (n.id, n.queues.clone())).collect());
    let named = napis.iter().filter_map(|n| Some((by_id.get(&n.id)?, n)));
    let receives = |n: &str| !n.starts_with("tx-");
    let all = named.filter(|(name, _)| receives(name)).map(|(name, n)| {
        let what = |setting: &str| format!("{setting} of {nic}'s NAPI {name}");
        Ok(Setting {
            flush: *need(&what("gro-flush-timeout"), &n.gro_flush_timeout_ns)?,
            defer: *need(&what("defer-hard-irqs"), &n.defer_hard_irqs)?,
            suspend: *need(&what("irq-suspend-timeout"), &n.irq_suspend_timeout_ns)?,
            name: name.clone(),
        })
    });
    let all: Vec<Setting> = all.collect::<Result<_, Missing>>()?;
    match all.is_empty() {
        true => Err(Missing(format!("NAPI instances of {nic} that receive: none is reported"))),
        false => Ok(all),
    }
}

fn busy_polled_per_s(case: &Case<'_>) -> Result<f64, Missing> {
    Ok(case.protocol(COUNTER)? as f64 / case.window_s()?)
}

/// The busiest CPU that serves the receive queues, by all of its work: the application's counts.
fn busiest(case: &Case<'_>, nic: &Nic) -> Result<(CpuId, Load), Missing> {
    let mut best: Option<(CpuId, Load)> = None;
    for cpu in queues::nic_cpus(case, nic, model::ids::Direction::Rx)?.iter() {
        let load = load::load(case, cpu)?;
        if best.is_none_or(|(_, b)| load.busy > b.busy) {
            best = Some((cpu, load));
        }
    }
    best.ok_or_else(|| Missing(format!("CPUs that serve {}'s queues: none is known", nic.name)))
}

fn count(n: usize) -> String {
    text::plural(n, "NAPI")
}

/// The settings as evidence, at most eight.
fn shown(draft: Draft, nic: &Nic, settings: &[&Setting]) -> Draft {
    settings.iter().take(8).fold(draft, |draft, s| {
        draft.show(format!("NAPI of {}", nic.name), s.text(), "netdev netlink, napi-get")
    })
}

fn no_effect(nic: &Nic, settings: &[&Setting]) -> Judgement {
    let name = &nic.name;
    let title = format!("suspension without effect on {} of {name}", count(settings.len()));
    let draft = Draft::new(name, title)
        .weigh(Severity::Info, Confidence::High)
        .explain(
            "The kernel suspends a NAPI's interrupt only if its polls are deferred, too: \
             defer-hard-irqs and gro-flush-timeout above 0, and irq-suspend-timeout above \
             gro-flush-timeout.",
        )
        .gain(Gain::Tidies, "the suspension that was set takes effect");
    shown(draft, nic, settings)
        .changes(settings.iter().flat_map(|s| s.suspended(nic)))
        .on_nic(name)
        .found()
}

/// The application polls by itself, and interrupts come in between.
fn polling(nic: &Nic, open: &[&Setting]) -> Draft {
    let name = &nic.name;
    let draft = Draft::new(name, format!("interrupts of {name} disturb an application that polls"))
        .weigh(Severity::Info, Confidence::Low)
        .explain(
            "An application receives by busy polling on a full CPU, and interrupts are not \
             suspended meanwhile. Suspension needs an application that calls epoll_wait with \
             prefer_busy_poll (EPIOCSPARAMS); whether this one does is not known.",
        )
        .gain(
            Gain::Improves,
            "up to a fifth more requests than with interrupts (published: +21%), at less CPU than \
             polling all the time",
        );
    shown(draft, nic, open).changes(open.iter().flat_map(|s| s.suspended(nic)))
}

/// A short timer polls into an application that has no time left.
fn interfering(nic: &Nic, short: &[&Setting]) -> Draft {
    let name = &nic.name;
    let draft = Draft::new(name, format!("{name} polls after short timers on a full CPU"))
        .weigh(Severity::Info, Confidence::Medium)
        .explain(
            "Short deferral helps below capacity. On a full CPU its timers interrupt the \
             application more often than the NIC would: the published experiment lost 8% with 10 \
             µs and 2% with 20 µs, and gained 4% with 50 µs.",
        )
        .gain(Gain::Improves, "more requests per second on the full CPU");
    let longer = short.iter().filter_map(|s| {
        s.change(nic, "gro_flush_timeout", s.flush.0, SHORT.0, "a packet may wait this long")
    });
    shown(draft, nic, short).changes(longer).change(advice(
        "epoll without prefer_busy_poll",
        "epoll with prefer_busy_poll, and irq-suspend-timeout 20 ms",
        "ioctl EPIOCSPARAMS in the application (Linux 6.9), one NAPI for each epoll",
        "the application must be changed; published: +21%",
    ))
}
