//! Questions to the kernel that are not files. Each is a plain function that goes through
//! [`Root::ask`](crate::Root::ask), so that a snapshot answers it too.

pub mod netdev;
pub mod netlink;
pub mod rtnl;
