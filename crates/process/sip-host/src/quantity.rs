//! Sizes, times, prefixes and digests as people write them in a configuration.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use mullion_sip::Digest;
use serde::{Deserialize, Deserializer};

/// A number of bytes: `4096`, `"64 KiB"`, `"2 MiB"`, `"1 GiB"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bytes(pub u64);

/// A time: `"500 ms"`, `"10 us"`, `"2 s"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause(pub Duration);

/// The beginning of names: `/part/part`, or `/` for all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prefix(String);

/// A SHA-256, as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sha256(pub Digest);

impl Prefix {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Bytes, String> {
        let (number, unit) = split(text);
        let unit: u64 = match unit {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => {
                return Err(format!(
                    "{text:?} is no size: write 4096, \"64 KiB\", \"2 MiB\" or \"1 GiB\""
                ));
            }
        };
        number
            .and_then(|number| number.checked_mul(unit))
            .map(Bytes)
            .ok_or_else(|| format!("{text:?} is no size, or too large a one"))
    }
}

impl FromStr for Pause {
    type Err = String;

    fn from_str(text: &str) -> Result<Pause, String> {
        let (number, unit) = split(text);
        let unit: u64 = match unit {
            "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            _ => {
                return Err(format!(
                    "{text:?} is no time: write \"10 us\", \"500 ms\" or \"2 s\""
                ));
            }
        };
        number
            .and_then(|number| number.checked_mul(unit))
            .map(|nanoseconds| Pause(Duration::from_nanos(nanoseconds)))
            .ok_or_else(|| format!("{text:?} is no time, or too long a one"))
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Prefix, String> {
        let good = |part: &str| !part.is_empty() && part != "." && part != "..";
        match text.strip_prefix('/') {
            Some("") => Ok(Prefix(text.into())),
            Some(parts) if parts.split('/').all(good) => Ok(Prefix(text.into())),
            _ => Err(format!(
                "{text:?} is no beginning of names: write \"/\", or \"/part/part\""
            )),
        }
    }
}

impl FromStr for Sha256 {
    type Err = String;

    fn from_str(text: &str) -> Result<Sha256, String> {
        let wrong = || format!("{text:?} is no SHA-256: 64 hexadecimal digits");
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut digest = [0; 32];
        for (byte, index) in digest.iter_mut().zip(0..) {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Sha256(Digest(digest)))
    }
}

/// A number and what follows it.
fn split(text: &str) -> (Option<u64>, &str) {
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    (text[..digits].parse().ok(), text[digits..].trim_start())
}

/// As text only.
macro_rules! from_text {
    ($($name:ident: $what:literal),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                        formatter.write_str($what)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    )*};
}
from_text!(
    Pause: "a time like \"500 ms\"",
    Prefix: "a beginning of names like \"/disk\"",
    Sha256: "64 hexadecimal digits"
);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct Size;
        impl serde::de::Visitor<'_> for Size {
            type Value = Bytes;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a size like 4096 or \"64 KiB\"")
            }
            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Bytes, E> {
                u64::try_from(number)
                    .map(Bytes)
                    .map_err(|_| E::custom("a size is not negative"))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Bytes, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Size)
    }
}
