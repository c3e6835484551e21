//! The shared and the static library: of the crate paceline, the C functions of its `src/ffi`. Only they get out.

extern crate paceline as _;
