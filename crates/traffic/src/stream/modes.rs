//! The two throughput levels of a stream's intervals, and whether they correlate with migrations.

use model::{
    Reading,
    measure::{GoesWith, StreamInterval, StreamMode, StreamModes},
};
use stats::{rank_sum, trial::two_places};

/// Fewest intervals that can show two levels.
const FEWEST: usize = 10;
/// A difference in migrations more likely than this by chance is ignored.
const BY_CHANCE: f64 = 0.01;

/// The two modes, if there are two.
pub fn of(intervals: &[StreamInterval]) -> Option<StreamModes> {
    let some = intervals.iter().filter(|i| i.bits_per_s > 0.0);
    let logs: Vec<f64> = some.clone().map(|i| i.bits_per_s.ln()).collect();
    if logs.len() < FEWEST {
        return None;
    }
    let cut = two_places::split(&logs)?.from;
    let (fast, slow): (Vec<&StreamInterval>, Vec<&StreamInterval>) =
        some.partition(|i| i.bits_per_s.ln() >= cut);
    let (moves_slow, moves_fast) = (moves(&slow), moves(&fast));
    let tested = moves_slow.known().zip(moves_fast.known());
    let found = tested.and_then(|(slow, fast)| rank_sum::above(slow, fast));
    let goes = |(share, p): (f64, f64)| match share {
        _ if p >= BY_CHANCE => GoesWith::Neither,
        share if share > 0.5 => GoesWith::Slow,
        _ => GoesWith::Fast,
    };
    let neither = || moves_slow.clone().and_then(|_| moves_fast.clone()).map(|_| GoesWith::Neither);
    Some(StreamModes {
        with_migrations: found.map_or_else(neither, |f| Reading::Known(goes(f))),
        migrations_p: found.map(|(_, p)| p),
        slow: mode(&slow, logs.len()),
        fast: mode(&fast, logs.len()),
    })
}

fn seconds(i: &StreamInterval) -> f64 {
    (i.end_s - i.start_s).max(1e-9)
}

/// Migrations per second of each interval.
fn moves(of: &[&StreamInterval]) -> Reading<Vec<f64>> {
    let each = of.iter().map(|i| i.migrations.clone().map(|n| n as f64 / seconds(i)));
    let mut all = vec![];
    for one in each {
        match one {
            Reading::Known(n) => all.push(n),
            Reading::Absent(why) => return Reading::Absent(why),
            Reading::Denied(why) => return Reading::Denied(why),
        }
    }
    Reading::Known(all)
}

fn mode(of: &[&StreamInterval], all: usize) -> StreamMode {
    let time: f64 = of.iter().map(|i| seconds(i)).sum();
    let bits: f64 = of.iter().map(|i| i.bits_per_s * seconds(i)).sum();
    let moved = moves(of).map(|each| {
        each.iter().zip(of).map(|(by_s, i)| by_s * seconds(i)).sum::<f64>() / time.max(1e-9)
    });
    StreamMode {
        intervals: of.len() as u64,
        share: of.len() as f64 / all.max(1) as f64,
        bits_per_s: bits / time.max(1e-9),
        migrations_per_s: moved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half-second intervals with these rates and migrations.
    fn intervals(of: &[(f64, u64)]) -> Vec<StreamInterval> {
        let one = |(n, (gbit, moved)): (usize, &(f64, u64))| StreamInterval {
            start_s: n as f64 / 2.0,
            end_s: (n + 1) as f64 / 2.0,
            bytes: 0,
            bits_per_s: gbit * 1e9,
            retransmits: Reading::Known(0),
            cwnd_bytes: Reading::Known(0),
            rtt_ns: Reading::Known(0),
            migrations: Reading::Known(*moved),
            datagrams: None,
        };
        of.iter().enumerate().map(one).collect()
    }

    /// 40 intervals, every third one slow; `moved` are the migrations of a slow and of a fast one.
    fn swings(moved: (u64, u64)) -> Vec<StreamInterval> {
        let jitter = |n: u64| (n * 7 % 5) as f64 * 0.1;
        let each = |n: u64| match n % 3 {
            0 => (10.0 + jitter(n), moved.0 + n % 2),
            _ => (20.0 + jitter(n), moved.1 + n % 2),
        };
        intervals(&(0..40).map(each).collect::<Vec<_>>())
    }

    #[test]
    fn two_throughput_modes_are_reported_with_the_one_that_migrates() {
        for (moved, goes) in
            [((6, 0), GoesWith::Slow), ((0, 6), GoesWith::Fast), ((3, 3), GoesWith::Neither)]
        {
            let modes = of(&swings(moved)).expect("two modes");
            assert_eq!(modes.with_migrations, Reading::Known(goes), "{modes:?}");
            assert_eq!((modes.slow.intervals, modes.fast.intervals), (14, 26));
            assert!((modes.slow.bits_per_s / 1e9 - 10.2).abs() < 0.1, "{modes:?}");
            assert!((modes.fast.bits_per_s / 1e9 - 20.2).abs() < 0.1, "{modes:?}");
            let by_s = modes.slow.migrations_per_s.get().unwrap();
            assert!((by_s - (2 * moved.0 + 1) as f64).abs() < 0.01, "{modes:?}");
            assert_eq!(modes.migrations_p.is_some_and(|p| p < 0.01), goes != GoesWith::Neither);
        }
    }

    #[test]
    fn one_throughput_or_too_few_intervals_are_no_two_modes() {
        let steady: Vec<(f64, u64)> = (0..40).map(|n| (20.0 + f64::from(n % 7) * 0.3, 1)).collect();
        assert_eq!(of(&intervals(&steady)), None);
        assert_eq!(of(&swings((6, 0))[..9]), None);
        let mut unknown = swings((6, 0));
        unknown[3].migrations = Reading::absent("no schedstat");
        let modes = of(&unknown).expect("two modes");
        assert_eq!(modes.with_migrations.why_not(), Some("no schedstat"));
        assert!(modes.migrations_p.is_none());
    }
}
