//! What a server does with requests: its routes with their middleware, its limits, and what is in work.

pub(crate) mod limits;
pub(crate) mod middleware;
pub(crate) mod routes;
pub(crate) mod service;
