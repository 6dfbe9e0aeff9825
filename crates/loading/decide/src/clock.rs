//! The time as attributes of a query.

use crate::keynote::Attributes;
use std::time::{SystemTime, UNIX_EPOCH};

/// The names that [`attributes`] gives.
pub const NAMES: [&str; 5] = ["hour", "minute", "weekday", "date", "epoch"];

/// The attributes by which conditions speak about the time, in the policy's own zone. Strings compare like times:
/// `hour` (`"00"` to `"23"`) and `minute` with two digits, `weekday` (`"1"`, Monday, to `"7"`), `date`
/// (`"20261121"`). `epoch`, the seconds since 1970, is for `&epoch`.
#[must_use]
pub fn attributes(time: SystemTime, utc_offset_minutes: i32) -> Attributes {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let local = seconds as i64 + i64::from(utc_offset_minutes) * 60;
    let (days, of_day) = (local.div_euclid(86_400), local.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let weekday = (days + 3).rem_euclid(7) + 1;
    let values = [
        format!("{:02}", of_day / 3600),
        format!("{:02}", of_day / 60 % 60),
        weekday.to_string(),
        format!("{year:04}{month:02}{day:02}"),
        seconds.to_string(),
    ];
    let pairs = NAMES.iter().zip(values);
    pairs
        .map(|(name, value)| ((*name).to_owned(), value.into_bytes()))
        .collect()
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian
/// calendar. The year is counted from March, so that the leap day is its last.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64, offset: i32) -> Vec<String> {
        let attributes = attributes(UNIX_EPOCH + Duration::from_secs(seconds), offset);
        let text = |name: &&str| String::from_utf8(attributes[*name].clone()).expect("ASCII");
        NAMES.iter().map(text).collect()
    }

    #[test]
    fn known_moments() {
        assert_eq!(at(0, 0), ["00", "00", "4", "19700101", "0"]);
        assert_eq!(
            at(951_782_399, 0),
            ["23", "59", "1", "20000228", "951782399"]
        );
        assert_eq!(at(951_782_400, 0)[2..4], ["2", "20000229"]);
        assert_eq!(
            at(1_795_262_400, 0),
            ["12", "00", "6", "20261121", "1795262400"]
        );
    }

    #[test]
    fn the_offset_moves_the_day() {
        assert_eq!(at(0, -60)[..4], ["23", "00", "3", "19691231"]);
        assert_eq!(at(86_399, 90)[..4], ["01", "29", "5", "19700102"]);
    }
}
