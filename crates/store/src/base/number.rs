//! Definition of the types for numbers of records, which are counted from 1.

/// Defines the number of a thing that is counted from 1, in records an integer.
macro_rules! record_number {
    ($(#[$attribute:meta])* $name:ident, $integer:ty, $thing:literal) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name($integer);

        impl $name {
            #[doc = concat!("Number of the last ", $thing, " where there is none.")]
            pub const NONE: $name = $name(0);

            #[doc = concat!("Creates the number of the `number`-th ", $thing, ", counted from 1.")]
            pub const fn new(number: $integer) -> $name {
                $name(number)
            }

            /// Returns the number as an integer.
            pub const fn get(self) -> $integer {
                self.0
            }

            #[doc = concat!("Returns the number of the ", $thing, " after this one.")]
            pub const fn next(self) -> $name {
                $name(self.0 + 1)
            }

            #[doc = concat!("Returns the number of the ", $thing, " before this one, `NONE` for the first.")]
            pub const fn previous(self) -> $name {
                $name(self.0.saturating_sub(1))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::num::ParseIntError;

            /// Parses a decimal number. Fails if the text is not one, or if the number is too large.
            fn from_str(text: &str) -> Result<$name, std::num::ParseIntError> {
                text.parse().map($name)
            }
        }
    };
}

pub(crate) use record_number;
