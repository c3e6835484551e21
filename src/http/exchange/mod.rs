//! One request and its answer: what handlers see of both, and who has the request.

pub(crate) mod body;
pub(crate) mod exchange;
pub(crate) mod flags;
pub(crate) mod request;
pub(crate) mod response;
