//! The same for bodies in chunks.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paceline::http::fuzzing::chunks(bytes));
