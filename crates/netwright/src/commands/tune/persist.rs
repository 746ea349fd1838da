//! `netwright tune persist`: keeps the changes in force over a reboot.

use model::tune::{FileAct, Persisted};
use tune::{
    persist::{
        self, Record, format,
        work::{PersistPlan, Request, drifted, in_force, look},
    },
    target::JournalTarget,
};

use super::args::{Format, PersistArgs};
use crate::{
    failure::{CommandEnd, Failure},
    interrupt,
    output::{Answer, Sink, note},
    session::Listener,
};

/// Writes, shows, prints or removes the files.
pub fn run(args: &PersistArgs) -> Result<CommandEnd, Failure> {
    Sink::new(args.output.output.clone()).check()?;
    let host = JournalTarget::open(args.place.clone().into())?;
    let listener = Listener { quiet: args.output.talk.quiet };
    let request = Request {
        id: args.id,
        remove: args.remove,
        dry_run: args.dry_run,
        prints: args.format.is_some(),
        into: args.into.clone(),
    };
    if args.format.is_some() || args.dry_run {
        let work = look(&request, &host, &listener)?;
        if let Some(form) = args.format {
            return print(args, form, &work);
        }
        let mut doc = persist::preview(&work.place, &work.old, &work.rendered)?;
        if !args.remove {
            doc.notes.extend(drifted(&host, &doc)?);
        }
        return tell(args, &doc);
    }
    let lock = host.lock(args.wait.no_wait, &listener)?;
    let work = look(&request, &host, &listener)?;
    let PersistPlan { place, old, kept, rendered, .. } = work;
    if kept.is_empty() && old == Record::default() {
        // Completes an earlier, interrupted `persist` first.
        persist::files::remove_temporary(&place.record)?;
        let nothing = persist::preview(&place, &old, &rendered)?;
        return tell(args, &nothing);
    }
    // From here on a hangup is ignored.
    interrupt::ignore(libc::SIGHUP);
    let mut doc = persist::write(&place, &old, kept, &rendered)?;
    drop(lock);
    if !args.remove {
        doc.notes.extend(in_force(&request, &host, &doc)?);
    }
    tell(args, &doc)
}

fn print(args: &PersistArgs, form: Format, work: &PersistPlan) -> Result<CommandEnd, Failure> {
    let printed = match form {
        Format::Ansible => format::ansible(&work.rendered),
        Format::Shell => format::shell(&work.kept, &work.unnamed),
        Format::Tuned => format::tuned(&work.kept, &work.unnamed),
    };
    Sink::new(args.output.output.clone()).text(&printed.text)?;
    for n in &printed.left_out {
        let (id, why) = (n.id, &n.why);
        note(&format!("not in it: {}={}: {why} (change {id})", n.knob, n.value));
    }
    Ok(if printed.left_out.is_empty() { CommandEnd::Yes } else { CommandEnd::No })
}

fn tell(args: &PersistArgs, doc: &Persisted) -> Result<CommandEnd, Failure> {
    Answer::of(&args.output).tell(doc, report::tune::persisted)?;
    let left = doc.files.iter().any(|f| f.act == FileAct::Left);
    Ok(if left || !doc.not_kept.is_empty() { CommandEnd::No } else { CommandEnd::Yes })
}
