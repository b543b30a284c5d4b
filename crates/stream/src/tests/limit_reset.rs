//! Tests of the wordings with which agents state when a usage limit is lifted.

use std::time::Duration;

use proq_base::time_form::unix_seconds;

use crate::base::limit_reset::{LimitReset, TimeOfDay, parse_limit_reset, reset_from_epoch};

fn reset_at_clock(hour: i8, minute: i8, date: Option<(i8, i8)>, zone: Option<&str>) -> Option<LimitReset> {
    Some(LimitReset::TimeOfDay(TimeOfDay { hour, minute, date, zone: zone.map(str::to_owned) }))
}

fn reset_at(seconds: i64) -> Option<LimitReset> {
    Some(LimitReset::At(unix_seconds::to_time(seconds).unwrap()))
}

fn reset_after(seconds: f64) -> Option<LimitReset> {
    Some(LimitReset::After(Duration::from_secs_f64(seconds)))
}

#[test]
fn parses_limit_reset_from_agent_messages() {
    for (message, wanted) in [
        ("Claude AI usage limit reached|1795221600", reset_at(1_795_221_600)),
        ("Claude AI usage limit reached|1795221600000 more", reset_at(1_795_221_600)),
        ("You've hit your session limit · resets 3pm", reset_at_clock(15, 0, None, None)),
        (
            "You've hit your session limit · resets 12:30am (Europe/Berlin)",
            reset_at_clock(0, 30, None, Some("Europe/Berlin")),
        ),
        ("5-hour limit reached ∙ resets 12pm", reset_at_clock(12, 0, None, None)),
        (
            "You've hit your weekly limit · resets Oct 9 at 3pm (UTC)",
            reset_at_clock(15, 0, Some((10, 9)), Some("UTC")),
        ),
        ("weekly limit reached · resets Oct 9, 10:59am", reset_at_clock(10, 59, Some((10, 9)), None)),
        ("You've hit your usage limit. Upgrade to Pro or try again in 3 days.", reset_after(259_200.0)),
        ("You've hit your usage limit. Try again in 1 day 2 hours 5 minutes.", reset_after(93_900.0)),
        ("You've hit your usage limit. Please try again at 3:05 PM.", reset_at_clock(15, 5, None, None)),
        ("usage limit ... try again at Nov 25th, 2026 3:05 PM.", reset_at_clock(15, 5, Some((11, 25)), None)),
        ("You have exhausted your capacity. Your quota will reset after 18h31m10s.", reset_after(66_670.0)),
        ("Quota exceeded. Please retry in 34.074824224s.", reset_after(34.074_824_224)),
        ("Rate limit reached for gpt-5: Please try again in 6m0s. Visit", reset_after(360.0)),
        ("rate limit: please try again in 20ms", reset_after(0.02)),
        ("limit resets at 15:30", reset_at_clock(15, 30, None, None)),
    ] {
        assert_eq!(parse_limit_reset(message), wanted, "{message}");
    }
}

#[test]
fn ignores_messages_without_reset_time() {
    for message in [
        "",
        "API Error: 529 Overloaded",
        "You've hit your weekly limit",
        "Try again later. a|b",
        "Claude AI usage limit reached|17952",
        "usage limit reached|99999999999999999999999",
        "resets 3",
        "resets 25:00",
        "resets 13pm",
        "resets Oct",
        "resets Oct é at 3pm",
        "resets é3pm",
        "try again in a while",
        "try again in 3 parsecs",
        "try again in 99999999999999999999999999 weeks",
        "the limit resets your counters",
    ] {
        assert_eq!(parse_limit_reset(message), None, "{message}");
    }
    assert_eq!(
        (reset_from_epoch(0), reset_from_epoch(12), reset_from_epoch(1_795_221_600)),
        (None, None, reset_at(1_795_221_600))
    );
}
