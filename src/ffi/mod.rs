//! The C interface. Each file is a section of a header in `include/paceline`, which is generated from here:
//! `build.rs` hands the files to cbindgen, and says which belong to a header.
//!
//! Functions are translations: check, borrow, call, map. Ownership can be read from the signature, and each of these may
//! be NULL, which is refused unless the header allows it:
//!
//! | argument | what it is | in C |
//! |---|---|---|
//! | `Option<&T>` | borrowed until the call ends | `const T *` |
//! | `Option<Box<T>>` | consumed | `T *` |
//! | `Option<&mut MaybeUninit<T>>` | where a result goes | `T *` |
//! | `In<T>`, `InOut<T>` | a struct that says its own size, to be read or written to | `const T *`, `T *` |
//! | `Text` | a text that ends with NUL | `const char *` |
//! | `*const T`, `*mut T` | anything else: the function says what | the same |
//!
//! | file | idea |
//! |---|---|
//! | `boundary.rs` | panics, NULL, failures and their texts |
//! | `sized.rs` | structs that may grow |
//! | `registry.rs` | numbers for tasks and strands |
//! | `owner.rs` | whose user_data is while a handler is being registered |
//! | `work.rs` | a task of C's |
//! | `settings.rs` | what a file and the environment say |
//! | `cells.rs` | events and items whose size is known at run time only |
//! | `layout.rs` | where C expects each field |
//! | the others | a section of a header each |
//!
//! A library with the feature `capi` alone has pools, queues, rings, servers and datagrams; the hub, settings
//! and worker pools come with their features, which are on by default. The header always declares all.
//!
//! What C hands over must be what the header says it is: a pointer that is not NULL is good for what
//! is done with it. Each `SAFETY` comment that says "as the header demands" rests on that.

mod access_log;
mod archive;
mod ask;
mod attempt;
mod boundary;
mod bridge;
mod bridge_options;
mod callback;
mod cells;
mod conn;
mod conn_event;
mod cq;
mod cq_answer;
mod cq_entry;
mod cq_figures;
mod cq_sources;
mod dead;
mod durable;
mod figures;
mod filter;
mod framing;
mod handle;
mod history;
mod host;
mod http;
mod http_options;
mod hub;
mod inherited;
mod job;
mod json;
#[cfg(all(test, target_pointer_width = "64"))]
mod layout;
mod listener;
mod log;
mod mailbox;
mod message;
mod message_filter;
mod metric;
mod middleware;
mod notice;
mod ops;
mod owner;
mod periodic;
mod pool;
mod pool_figures;
mod pool_registry;
mod publish_all;
mod publisher;
mod queue;
mod registry;
mod remote;
mod replay;
mod request;
mod response;
mod retry;
mod ring;
mod server;
mod service;
mod settings;
mod signals;
mod sized;
mod stats;
mod status;
mod strand;
mod subscription;
mod supervisor;
mod task;
mod task_status;
mod task_type;
mod threshold;
mod timeline;
mod timer;
mod udp;
mod values;
mod webhook;
mod work;
mod work_stats;
mod work_tagged;
mod work_task;
mod workers;
