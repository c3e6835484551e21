//! Requests are seen alike wherever their bytes are cut, and nothing makes the reader panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paceline::http::fuzzing::requests(bytes));
