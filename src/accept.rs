//! Content negotiation: which of several media types a peer wants most (RFC 9110, 12.5.1).

/// The place of the offer that this `Accept` wants most; the first of those it wants equally. 0 if it wants
/// none of them, or says nothing: something must be sent.
pub(crate) fn preferred(accept: &str, offers: &[&str]) -> usize {
    let (mut best, mut most) = (0, 0);
    for (place, offer) in offers.iter().enumerate() {
        let weight = weight(accept, offer);
        if weight > most {
            (best, most) = (place, weight);
        }
    }
    best
}

/// How much this media type is wanted, in thousandths: what the closest range says.
fn weight(accept: &str, offer: &str) -> u32 {
    let (mut weight, mut closest) = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let closeness = match name.strip_suffix("/*") {
            Some("*") => 1,
            Some(kind)
                if offer.split('/').next().is_some_and(|of| of.eq_ignore_ascii_case(kind)) =>
            {
                2
            }
            None if name.eq_ignore_ascii_case(offer) => 3,
            _ => continue,
        };
        let quality = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let thousandths = quality.map_or(1000, thousandths);
        if closeness > closest || closeness == closest && thousandths > weight {
            (weight, closest) = (thousandths, closeness);
        }
    }
    weight
}

/// What is no number from 0 to 1 is taken for 1.
fn thousandths(quality: &str) -> u32 {
    let (whole, decimals) = quality.split_once('.').unwrap_or((quality, ""));
    if !matches!(whole, "0" | "1") || !decimals.bytes().all(|digit| digit.is_ascii_digit()) {
        return 1000;
    }
    let digits = whole.bytes().chain(decimals.bytes()).chain(*b"000");
    digits.take(4).fold(0, |value, digit| value * 10 + u32::from(digit - b'0')).min(1000)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_closest_range_says_how_much_a_type_is_wanted() {
        let offers = ["text/plain", "application/json", "text/html"];
        for (accept, expected) in [
            ("", 0),
            ("*/*", 0),
            ("image/png", 0),
            ("application/json", 1),
            ("Application/JSON; charset=utf-8", 1),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 2),
            ("text/*;q=0.5, application/json;q=0.4", 0),
            ("text/*;q=0.5, application/*;q=0.6", 1),
            ("text/*;q=0.5, text/plain;q=0.1, application/json;q=0.4", 2),
            ("*/*, text/plain;q=0", 1),
            ("text/html;q=0.2;level=1, text/plain;q=0.1", 2),
            ("text/html;q=x, text/plain;q=2", 0),
            ("text/plain;q=0.1999, text/html;q=0.2, application/json;q=0.1", 2),
            ("text/plain;q=0.9, text/html;q=1.5", 2),
            ("text/plain;q=0., text/html;q=0.001", 2),
            (",;,/,*,text", 0),
        ] {
            assert_eq!(preferred(accept, &offers), expected, "{accept}");
        }
    }
}
