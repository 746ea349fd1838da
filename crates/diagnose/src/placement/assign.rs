//! Services to nodes, at the least total cost, with so many places a node.
//!
//! **Source**: successive shortest paths for minimum-cost flow, as in Ahuja, Magnanti and Orlin,
//! "Network Flows" (1993), section 9.7. Each service that is added takes the cheapest chain of
//! moves, so the total stays the least.

/// The node of each service, as an index, or `None` where the places do not suffice for all.
///
/// `costs[service][node]` is what a service costs on a node, `None` where it must not be;
/// `places[node]` is how many services a node takes.
pub(super) fn assign(costs: &[Vec<Option<u64>>], places: &[usize]) -> Option<Vec<usize>> {
    let mut at: Vec<usize> = vec![];
    for service in 0..costs.len() {
        at.push(usize::MAX);
        add(costs, places, &mut at, service)?;
    }
    Some(at)
}

fn cost(costs: &[Vec<Option<u64>>], service: usize, node: usize) -> Option<i64> {
    costs.get(service)?.get(node)?.and_then(|c| i64::try_from(c).ok())
}

/// Adds one service by the cheapest chain of moves: it takes a place, the service there moves to
/// another node, and so on up to a node with a free place.
fn add(
    costs: &[Vec<Option<u64>>],
    places: &[usize],
    at: &mut [usize],
    service: usize,
) -> Option<()> {
    let nodes = places.len();
    // The least cost of a chain that ends in each node, and the last move on it.
    let mut least: Vec<Option<i64>> = (0..nodes).map(|n| cost(costs, service, n)).collect();
    let mut moved: Vec<Option<(usize, usize)>> = vec![None; nodes];
    for _ in 0..nodes {
        let mut better = false;
        for (other, &from) in at.iter().enumerate().filter(|(o, _)| *o != service) {
            let (Some(so_far), Some(here)) =
                (least.get(from).copied().flatten(), cost(costs, other, from))
            else {
                continue;
            };
            for to in (0..nodes).filter(|to| *to != from) {
                let Some(there) = cost(costs, other, to) else { continue };
                let total = so_far + there - here;
                if least.get(to).copied().flatten().is_none_or(|best| total < best) {
                    *least.get_mut(to)? = Some(total);
                    *moved.get_mut(to)? = Some((other, from));
                    better = true;
                }
            }
        }
        if !better {
            break;
        }
    }
    let free = |node: usize| {
        let taken = at.iter().filter(|n| **n == node).count();
        places.get(node).is_some_and(|p| taken < *p)
    };
    let ends = (0..nodes).filter(|n| free(*n));
    let (_, mut end) = ends.filter_map(|n| Some((least.get(n).copied().flatten()?, n))).min()?;
    while let Some((other, from)) = moved.get(end).copied().flatten() {
        *at.get_mut(other)? = end;
        end = from;
    }
    *at.get_mut(service)? = end;
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn total(costs: &[Vec<Option<u64>>], at: &[usize]) -> Option<u64> {
        at.iter().enumerate().map(|(s, n)| costs[s][*n]).sum()
    }

    /// The least total of all assignments, by trying each.
    fn by_trying(costs: &[Vec<Option<u64>>], places: &[usize]) -> Option<u64> {
        let n = places.len();
        let all = (0..n.pow(costs.len() as u32)).filter_map(|mut number| {
            let mut at = vec![];
            for _ in costs {
                at.push(number % n);
                number /= n;
            }
            let fits = (0..n).all(|node| at.iter().filter(|a| **a == node).count() <= places[node]);
            fits.then(|| total(costs, &at)).flatten()
        });
        all.min()
    }

    proptest! {
        #[test]
        fn no_assignment_is_cheaper(
            costs in prop::collection::vec(
                prop::collection::vec(prop::option::weighted(0.9, 0u64..40), 3), 1..7),
            places in prop::collection::vec(0usize..4, 3),
        ) {
            let found = assign(&costs, &places);
            for (node, most) in places.iter().enumerate() {
                let taken = found.iter().flatten().filter(|n| **n == node).count();
                prop_assert!(taken <= *most);
            }
            let cost = found.map(|at| total(&costs, &at).expect("only allowed nodes"));
            prop_assert_eq!(cost, by_trying(&costs, &places));
        }
    }
}
