//! Forms of durations and points in time: integers in records and answers, and short text.

/// Formats a duration in its largest whole unit: `5s`, `12m`, `3h`, `2d`.
#[must_use]
pub fn short_duration(duration: std::time::Duration) -> String {
    match duration.as_secs() {
        s @ 0..60 => format!("{s}s"),
        s @ 60..3600 => format!("{}m", s / 60),
        s @ 3600..86400 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86400),
    }
}

/// Serde functions for a duration as a number of seconds, without its fraction.
pub mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Serializes a duration in seconds.
    pub fn serialize<S: Serializer>(duration: &Duration, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u64(duration.as_secs())
    }

    /// Deserializes a number of seconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
        u64::deserialize(d).map(Duration::from_secs)
    }

    /// Serde functions for an optional duration.
    pub mod option {
        use std::time::Duration;

        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        /// Serializes an optional duration in seconds; none becomes null.
        pub fn serialize<S: Serializer>(duration: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
            duration.map(|duration| duration.as_secs()).serialize(s)
        }

        /// Deserializes an optional number of seconds; null becomes none.
        pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<u64>::deserialize(d)?.map(Duration::from_secs))
        }
    }
}

/// Serde function for a duration as a number of milliseconds, without its fraction.
pub mod millis {
    /// Serde function for an optional duration.
    pub mod option {
        use std::time::Duration;

        use serde::{Serialize, Serializer};

        /// Serializes an optional duration in milliseconds; none becomes null.
        pub fn serialize<S: Serializer>(duration: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
            duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)).serialize(s)
        }
    }
}

/// A point in time as a number of seconds since 1970, and the serde functions for it.
pub mod unix_seconds {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Returns the point in time; none if the system cannot represent it.
    pub fn to_time(seconds: i64) -> Option<SystemTime> {
        let distance = Duration::from_secs(seconds.unsigned_abs());
        if seconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
    }

    /// Returns the seconds of a point in time, rounded towards 1970.
    pub fn from_time(time: SystemTime) -> i64 {
        let to_signed = |distance: Duration| i64::try_from(distance.as_secs());
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => to_signed(after).unwrap_or(i64::MAX),
            Err(before) => to_signed(before.duration()).map_or(i64::MIN, |seconds| -seconds),
        }
    }

    /// Serializes a point in time as seconds since 1970.
    pub fn serialize<S: Serializer>(time: &SystemTime, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_i64(from_time(*time))
    }

    /// Deserializes a number of seconds since 1970; fails if the system cannot represent the point in time.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<SystemTime, D::Error> {
        to_time(i64::deserialize(d)?).ok_or_else(|| D::Error::custom("time out of range"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde::{Deserialize, Serialize};

    use super::unix_seconds;

    #[derive(Serialize, Deserialize)]
    struct Limits {
        #[serde(with = "super::seconds")]
        time: Duration,
        #[serde(default, with = "super::seconds::option", skip_serializing_if = "Option::is_none")]
        stall: Option<Duration>,
        #[serde(skip_deserializing, with = "super::millis::option")]
        delay: Option<Duration>,
    }

    #[test]
    fn durations_are_integers() {
        for (text, delay, written) in [
            (r#"{"time":90}"#, None, r#"{"time":90,"delay":null}"#),
            (
                r#"{"time":90,"stall":5}"#,
                Some(Duration::from_millis(1500)),
                r#"{"time":90,"stall":5,"delay":1500}"#,
            ),
        ] {
            let limits = Limits { delay, ..serde_json::from_str(text).unwrap() };
            assert_eq!(serde_json::to_string(&limits).unwrap(), written);
        }
    }

    #[test]
    fn unix_seconds_round_trip() {
        for seconds in [i64::MIN, -1, 0, 1_700_000_000, i64::MAX] {
            assert_eq!(unix_seconds::to_time(seconds).map(unix_seconds::from_time), Some(seconds));
        }
    }
}
