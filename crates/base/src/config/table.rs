//! Macro that declares settings: a key in the table of settings and a typed field for each.

/// Declares structs of settings, of which `NAME with { FIELD: STRUCT; } { … }` nests others. An entry is
///
/// ```text
/// /// Doc of the field.
/// FIELD: TYPE = NAME, FORMAT, default TEXT, repository|user[, CONVERSION], SUMMARY;
/// ```
///
/// `repository` means that a `proq.toml` in a repository may set it, `user` that only the user may.
/// CONVERSION is a function that makes a TYPE from a `SettingValue`, by default the `FromSetting` of TYPE.
macro_rules! setting_table {
    (@by_repository repository) => { true };
    (@by_repository user) => { false };
    (@convert $value:ident, $type:ty) => {
        <$type as FromSetting>::from_setting($value)
    };
    (@convert $value:ident, $type:ty, $conversion:path) => { $conversion($value) };
    ($(
        $(#[$struct_meta:meta])*
        $name:ident $(with {
            $( $(#[$nested_meta:meta])* $nested:ident: $nested_type:ident; )*
        })? {
            $(
                $(#[$meta:meta])*
                $field:ident: $type:ty = $key:literal, $format:expr, default $default:expr, $setter:ident
                    $(, $conversion:path)?, $summary:literal;
            )*
        }
    )*) => {
        use $crate::config::conversion::{FromSetting, SettingValue};
        use $crate::config::key::Key;

        /// Keys of the settings, by the struct that has their fields.
        pub(super) const KEY_GROUPS: &[&[Key]] = &[$(&$name::KEYS),*];

        $(
            $(#[$struct_meta])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $name {
                $(
                    $(#[$meta])*
                    #[doc = concat!("\nSetting `", $key, "`.")]
                    pub $field: $type,
                )*
                $($( $(#[$nested_meta])* pub $nested: $nested_type, )*)?
            }

            impl $name {
                const KEYS: [Key; [$($key),*].len()] = [$(
                    Key {
                        name: $key,
                        format: $format,
                        default: $default,
                        settable_by_repository: setting_table!(@by_repository $setter),
                        summary: $summary,
                    }
                ),*];

                /// Creates the typed settings from `value_of`, which returns the value of a setting.
                pub(super) fn from_values<'a>(value_of: &dyn Fn(&Key) -> SettingValue<'a>) -> $name {
                    let [$($field),*] = $name::KEYS.map(|key| value_of(&key));
                    $name {
                        $($field: setting_table!(@convert $field, $type $(, $conversion)?),)*
                        $($($nested: $nested_type::from_values(value_of),)*)?
                    }
                }
            }
        )*
    };
}

pub(super) use setting_table;
