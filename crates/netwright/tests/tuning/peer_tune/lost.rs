//! Tests of a client, a remote end or a link that is lost in the middle: nothing stays changed.

use super::{Pair, SMALL, complaint, document, send, signal, wait_for};

#[test]
fn a_client_that_is_killed_in_the_middle_leaves_nothing() {
    let pair = Pair::new();
    let mut fix = pair.in_the_middle(&pair.responder());
    signal(&fix, libc::SIGKILL);
    fix.wait().unwrap();
    wait_for("the old buffer", || pair.rmem() == SMALL);
    // The next client may change it again.
    let status = pair.asks(&["tune", "status", "--json"], &pair.responder()).output().unwrap();
    assert_eq!(document(&status)["sets"].as_array().unwrap().len(), 0, "{}", complaint(&status));
}

#[test]
fn an_end_that_is_killed_there_leaves_nothing_and_the_one_here_says_so() {
    let pair = Pair::new();
    let fix = pair.in_the_middle(&pair.responder());
    send(pair.remote(), libc::SIGKILL);
    wait_for("the old buffer", || pair.rmem() == SMALL);
    signal(&fix, libc::SIGCONT);
    let out = fix.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", complaint(&out));
    // Everything is closed in the server's journal: the next client starts afresh.
    let status = pair.asks(&["tune", "status", "--json"], &pair.responder()).output().unwrap();
    assert_eq!(document(&status)["sets"].as_array().unwrap().len(), 0, "{}", complaint(&status));
}

#[test]
fn a_wire_that_goes_dead_leaves_nothing() {
    let pair = Pair::new();
    let fix = pair.in_the_middle(&pair.responder());
    // It stays stopped, like a host that hangs: nothing is closed or sent.
    wait_for("the old buffer", || pair.rmem() == SMALL);
    signal(&fix, libc::SIGKILL);
    fix.wait_with_output().unwrap();
}

#[test]
fn a_cable_that_is_cut_leaves_nothing_and_fix_says_so() {
    let pair = Pair::new();
    let fix = pair.in_the_middle(&pair.responder());
    let cut = pair.lab.output("right", &["ip", "link", "set", "eth0", "down"]).unwrap();
    assert_eq!(cut.code, 0);
    signal(&fix, libc::SIGCONT);
    wait_for("the old buffer", || pair.rmem() == SMALL);
    let out = fix.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", complaint(&out));
    assert!(complaint(&out).contains("within 20 s"), "{}", complaint(&out));
}
