//! The simple method: what the response time is made of, by subtraction, and another path by
//! addition. As people do it by hand, with nothing ever waiting: right with few
//! clients, and the low-load limit of every model here.

/// The time in the server: the time of a transaction less the way there and back.
///
/// **Shape**: negative where the path was measured slower than the whole.
pub fn service_ns(clients: u32, per_s: f64, one_way_ns: f64) -> f64 {
    f64::from(clients) * 1e9 / per_s - 2.0 * one_way_ns
}

/// Transactions a second with that service time on another path.
pub fn per_s(clients: u32, service_ns: f64, one_way_ns: f64) -> f64 {
    f64::from(clients) * 1e9 / (service_ns + 2.0 * one_way_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The field case: a 64-core PostgreSQL server, `select 1`, loopback against the LAN.
    #[test]
    fn the_field_cases_predictions_come_out() {
        // Clients, loopback's transactions a second and one way, the LAN's one way; what was
        // found for the service, as it was written, and predicted.
        let cases = [
            (1, 36_938.0, 5_160.0, 13_600.0, 16_750.0, 22_753.0),
            (64, 1_575_989.0, 11_800.0, 61_800.0, 17_000.0, 455_192.0),
        ];
        for (clients, loopback, local, peer, written, predicted) in cases {
            let service = service_ns(clients, loopback, local);
            assert!((service - written).abs() < 10.0, "{service}");
            // By hand the service time was rounded before it was used.
            assert_eq!(per_s(clients, written, peer).round(), predicted);
            // Without rounding the same to 4 digits.
            let whole = per_s(clients, service, peer);
            assert!((whole / predicted - 1.0).abs() < 1e-4, "{whole}");
        }
        let measured = [(22_753.0, 24_725.0, -8.0), (455_192.0, 466_738.0, -2.5)];
        for (predicted, measured, error) in measured {
            let off: f64 = (predicted / measured - 1.0) * 100.0;
            assert!((off - error).abs() < 0.05, "{off}");
        }
    }

    #[test]
    fn the_prediction_for_the_same_path_is_the_measurement() {
        let service = service_ns(8, 50_000.0, 30_000.0);
        assert!((per_s(8, service, 30_000.0) - 50_000.0).abs() < 1e-6);
        assert!(service_ns(1, 100_000.0, 6_000.0) < 0.0);
    }
}
