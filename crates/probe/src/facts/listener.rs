//! Listening TCP sockets, the fill of their accept queues, and their owners.

use std::collections::BTreeSet;

use model::{Reading, process::Listener};
use parse::inet_diag::LISTEN;

use crate::{
    ReadError, Root,
    ask::{
        self,
        owners::{self, Owners},
        sock_diag::Listening,
    },
    error::reading,
    root::SocketKind,
};

/// Every listening TCP socket of this network namespace, ascending by port and address.
pub fn read(root: &Root) -> Reading<Vec<Listener>> {
    let sockets = match ask::sock_diag::listeners(root) {
        Ok(dump) => Ok(dump.entries.into_iter().map(Row::from).collect()),
        // No INET_DIAG, or a tree of files.
        Err(e @ ReadError::Absent { .. }) => match printed(root) {
            Some(listeners) => return Reading::Known(sorted(listeners)),
            None => from_files(root, e),
        },
        Err(e) => Err(e),
    };
    reading(sockets).map(|rows: Vec<Row>| {
        let wanted: BTreeSet<u64> = rows.iter().map(|r| r.inode).filter(|&i| i != 0).collect();
        let owners = owners::of(root, &wanted);
        sorted(rows.into_iter().map(|row| listener(row, &owners)).collect())
    })
}

fn sorted(mut listeners: Vec<Listener>) -> Vec<Listener> {
    listeners.sort_by(|a, b| {
        let pids = |l: &Listener| l.pids.known().cloned();
        (a.port, &a.address, pids(a)).cmp(&(b.port, &b.address, pids(b)))
    });
    listeners
}

/// As `ss` printed them into a support archive. It has the limits, which `/proc/net/tcp` has not.
fn printed(root: &Root) -> Option<Vec<Listener>> {
    let all = parse::ss_text::listeners(&root.socket_text(SocketKind::Listeners)?)?;
    let one = |l: parse::ss_text::PrintedListener| Listener {
        address: l.address.to_string(),
        port: l.address.port(),
        accept_queue: Reading::Known(l.waiting),
        accept_queue_limit: Reading::Known(l.limit),
        pids: match l.pids {
            none if none.is_empty() => Reading::absent("ss printed no process"),
            pids => Reading::Known(pids),
        },
    };
    Some(all.into_iter().map(one).collect())
}

/// One socket, by whichever source.
struct Row {
    address: std::net::SocketAddr,
    waiting: u32,
    limit: Reading<u32>,
    inode: u64,
}

impl From<Listening> for Row {
    fn from(l: Listening) -> Self {
        let Listening { address, waiting, limit, inode, .. } = l;
        Self { address, waiting, limit: Reading::Known(limit), inode }
    }
}

/// `/proc/net/tcp` and, with IPv6, `tcp6`. `asked` is why netlink did not answer.
fn from_files(root: &Root, asked: ReadError) -> Result<Vec<Row>, ReadError> {
    let four = root.read("/proc/net/tcp").map_err(|e| match e {
        ReadError::Absent { .. } => asked,
        other => other,
    })?;
    let six = root.read("/proc/net/tcp6").unwrap_or_default();
    let sockets = [four, six].into_iter().flat_map(|b| parse::proc_net_tcp::parse(&b).sockets);
    Ok(sockets
        .filter(|s| s.state == LISTEN)
        .map(|s| Row {
            address: s.local,
            waiting: s.rx_queue,
            limit: Reading::absent("/proc/net/tcp does not report it; sock_diag does"),
            inode: s.inode,
        })
        .collect())
}

fn listener(row: Row, owners: &Result<Owners, ReadError>) -> Listener {
    Listener {
        address: row.address.to_string(),
        port: row.address.port(),
        accept_queue: Reading::Known(row.waiting),
        accept_queue_limit: row.limit,
        pids: reading(owners.clone()).and_then(|owners| owners.of(row.inode)),
    }
}
