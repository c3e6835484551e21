//! What needs no public door.

use super::report::Status;

#[test]
fn a_status_survives_its_bits() {
    for bits in 0..8 {
        let status = Status::from_bits(bits);
        assert_eq!(status as u32, bits);
        assert_eq!(status.is_end(), bits >= 3, "{status}");
    }
}
