//! Conversion of the texts of settings to the types of their fields.

use std::path::PathBuf;
use std::time::Duration;

use super::value_format::{ValueFormat, non_empty_lines, parse_area, parse_duration, parse_port_range};
use crate::money::NanoDollars;

/// Text of a setting, and what its conversion depends on.
#[derive(Clone, Copy)]
pub(super) struct SettingValue<'a> {
    /// Text, validated against the format.
    pub(super) text: &'a str,
    /// Format of the setting.
    pub(super) format: ValueFormat,
    /// Whether the text is the default of a setting that is not set.
    pub(super) is_default: bool,
}

/// Type of a field that a setting is converted to.
pub(super) trait FromSetting {
    /// Converts a value.
    fn from_setting(value: SettingValue<'_>) -> Self;
}

impl FromSetting for String {
    fn from_setting(value: SettingValue<'_>) -> String {
        match value.format {
            ValueFormat::AgentOrProgram | ValueFormat::SoundOrCommand => value.text.trim().to_owned(),
            _ => value.text.to_owned(),
        }
    }
}

impl FromSetting for bool {
    fn from_setting(value: SettingValue<'_>) -> bool {
        value.text == "true"
    }
}

impl FromSetting for u32 {
    fn from_setting(value: SettingValue<'_>) -> u32 {
        value.text.parse().unwrap_or_default()
    }
}

impl FromSetting for usize {
    fn from_setting(value: SettingValue<'_>) -> usize {
        value.text.parse().unwrap_or_default()
    }
}

/// A size is in bytes, a time in seconds.
impl FromSetting for u64 {
    fn from_setting(value: SettingValue<'_>) -> u64 {
        let unit_size = match value.format {
            ValueFormat::Count(unit) => unit.size(),
            _ => 1,
        };
        u64::from(u32::from_setting(value)) * unit_size
    }
}

impl FromSetting for NanoDollars {
    fn from_setting(value: SettingValue<'_>) -> NanoDollars {
        NanoDollars::parse(value.text).unwrap_or_default()
    }
}

impl FromSetting for Duration {
    fn from_setting(value: SettingValue<'_>) -> Duration {
        match value.format {
            ValueFormat::TimeSpan => parse_duration(value.text).unwrap_or_default(),
            _ => Duration::from_secs(u64::from_setting(value)),
        }
    }
}

/// First and last port.
impl FromSetting for (u16, u16) {
    fn from_setting(value: SettingValue<'_>) -> (u16, u16) {
        parse_port_range(value.text).unwrap_or_default()
    }
}

/// Zero and an empty text are none.
impl<T: FromSetting + Default + PartialEq> FromSetting for Option<T> {
    fn from_setting(value: SettingValue<'_>) -> Option<T> {
        Some(T::from_setting(value)).filter(|inner| *inner != T::default())
    }
}

impl FromSetting for Vec<String> {
    fn from_setting(value: SettingValue<'_>) -> Vec<String> {
        let text = value.text;
        match value.format {
            ValueFormat::EventNames => {
                text.split([' ', ',']).filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect()
            }
            // A pattern may begin or end with white space.
            ValueFormat::Patterns => {
                text.lines().filter(|line| !line.trim().is_empty()).map(ToOwned::to_owned).collect()
            }
            _ => non_empty_lines(text),
        }
    }
}

/// Name and folder of each area.
impl FromSetting for Vec<(String, String)> {
    fn from_setting(value: SettingValue<'_>) -> Vec<(String, String)> {
        let to_owned_pair = |(name, folder): (&str, &str)| (name.to_owned(), folder.to_owned());
        value.text.lines().filter_map(parse_area).map(to_owned_pair).collect()
    }
}

/// Converts a count of which 0 means 1.
pub(super) fn at_least_one<T: FromSetting + Ord + From<u8>>(value: SettingValue<'_>) -> T {
    T::from_setting(value).max(T::from(1))
}

/// Converts a text with the white space around it; none if it is empty.
pub(super) fn untrimmed(value: SettingValue<'_>) -> Option<String> {
    Some(value.text.to_owned()).filter(|text| !text.is_empty())
}

/// Resolves a folder; none without a home folder. A default below `~/.cache` is in the user's cache folder.
pub(super) fn cache_folder(value: SettingValue<'_>) -> Option<PathBuf> {
    let cache_home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    let subfolder = value.text.strip_prefix("~/.cache/").filter(|_| value.is_default);
    match (cache_home, subfolder, value.text.strip_prefix("~/")) {
        (Some(cache), Some(subfolder), _) => Some(cache.join(subfolder)),
        (_, _, Some(home_subfolder)) => Some(std::env::home_dir()?.join(home_subfolder)),
        (_, _, None) => Some(PathBuf::from(value.text)),
    }
}
