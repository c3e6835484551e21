//! Requests are seen alike wherever their bytes are cut, and nothing makes the reader panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| paceline::net::http::fuzzing::requests(bytes));
