//! In C++.

#[path = "../examples/chat.rs"]
mod chat;
#[path = "../examples/http.rs"]
mod http;
#[path = "../examples/kit.rs"]
#[allow(dead_code, reason = "some of it is for examples that are not here")]
mod kit;
#[path = "../examples/observe.rs"]
mod observe;
#[path = "../examples/proxy.rs"]
mod proxy;

use std::process::Command;

fn is_missing() -> bool {
    super::has_no("c++", "C++")
}

fn program(name: &str) -> Command {
    super::compiled(
        &format!("examples/cpp/{name}.cpp"),
        "-O1 -g -pthread -Wall -Wextra -Wpedantic -Wshadow -Werror",
    )
}
