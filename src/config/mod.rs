//! Configuration: the table of settings, and the layers that each value can come from.

mod key;
mod keys;
mod lane_checkout;
mod layers;
mod notifications;
mod pool;
mod set_up;
mod settings;
mod value_format;

pub(crate) use key::Key;
pub(crate) use keys::KEYS;
pub(crate) use lane_checkout::{CheckoutSettings, DEFAULT_LANE_LOCATION, SubmoduleMode};
pub(crate) use layers::{Error, Layers, Origin};
pub(crate) use notifications::{DesktopNotifier, EventLogLimits, NotifySettings, mask_url};
pub(crate) use pool::PoolSettings;
pub(crate) use set_up::SetUpSettings;
pub(crate) use settings::{Autocommit, Settings, Uncommitted};
pub(crate) use value_format::{
    LANE_PORT_COUNT, ValueFormat, format_dollars, parse_duration, parse_nano_dollars,
};
