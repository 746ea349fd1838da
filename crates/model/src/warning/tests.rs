use serde_json::{from_value, json, to_value};

use super::*;

fn both_ways(warning: &Warning, json: serde_json::Value) {
    assert_eq!(to_value(warning).unwrap(), json);
    assert_eq!(from_value::<Warning>(json).unwrap(), *warning);
}

#[test]
fn a_warning_has_its_code_its_data_and_its_line() {
    let drifts = Warning::MedianDrifts { trend: 0.031 };
    let message = "the median drifts by +3.1% over the run";
    let json = json!({ "code": "median_drifts", "data": { "trend": 0.031 }, "message": message });
    both_ways(&drifts, json.clone());
    let json =
        json!({ "code": "at_server", "data": json, "message": format!("server: {message}") });
    both_ways(&Warning::AtServer(Box::new(drifts)), json);
    let without = json!({
        "code": "batches_resemble",
        "message": "autocorrelated samples: the CI may be too narrow; measure longer",
    });
    both_ways(&Warning::BatchesResemble, without);
    let by_status = BTreeMap::from([(404, 3)]);
    let statuses = Warning::Statuses { kind: StatusKind::Errors, by_status, responses: 5 };
    let data = json!({ "kind": "errors", "by_status": { "404": 3 }, "responses": 5 });
    let message = "60.0% of the responses say that something is wrong (3 × 404), and the times are \
                   of all of them";
    both_ways(&statuses, json!({ "code": "statuses", "data": data, "message": message }));
}

#[test]
fn what_another_version_warns_of_keeps_its_code_and_its_line() {
    let json = json!({ "code": "solar_flare", "message": "the sun was in the way" });
    let other =
        Warning::Other { code: "solar_flare".into(), message: "the sun was in the way".into() };
    both_ways(&other, json);
    assert_eq!(other.to_string(), "the sun was in the way");
}

#[test]
fn how_often_a_connection_is_made_anew_is_reported_however_seldom_that_is() {
    let of = |per_request, round_trips| {
        Warning::ConnectionsNotKept { per_request, round_trips }.to_string()
    };
    let said = of(0.001, Some(1.0));
    assert!(
        said.contains("a new one every 1,000 requests") && said.contains("add 1 round trip for"),
        "{said}"
    );
    let said = of(0.25, Some(3.0));
    assert!(
        said.contains("0.25 new ones a request") && said.contains("add 3 round trips for"),
        "{said}"
    );
    let said = of(0.0, None);
    assert!(said.contains("0.00 new ones") && said.contains("leave it out"), "{said}");
}

#[test]
fn a_rate_to_ask_for_has_two_digits() {
    let all = [0.2, 7.0, 99.0, 51_834.4].map(two_digits);
    assert_eq!(all, [1, 7, 99, 51_000]);
}

#[test]
fn rounds_are_reported_in_number() {
    let of = |by_cause: &[(&str, u64)]| {
        let by_cause = by_cause.iter().map(|(why, n)| ((*why).to_owned(), *n)).collect();
        Warning::RoundsRepeated { by_cause }.to_string()
    };
    let said = of(&[("closed", 1)]);
    assert!(said.starts_with("1 round failed and was repeated"), "{said}");
    let said = of(&[("refused", 2), ("silent", 1)]);
    assert!(said.starts_with("3 rounds") && said.ends_with("2 × refused, 1 × silent"), "{said}");
}
