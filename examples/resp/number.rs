//! Numbers as Redis reads them.

/// A whole number without anything around it: no blank, no `+`, no zero in front.
pub fn parse(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !is_negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    // Counted downwards: there is one more negative number than there are positive ones.
    let negative = digits.iter().try_fold(0i64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_sub(digit)
    })?;
    if is_negative { Some(negative) } else { negative.checked_neg() }
}
