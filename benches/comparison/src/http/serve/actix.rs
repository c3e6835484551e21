//! Stands for the web frameworks of Rust by the one that benchmarks praise: actix-web. It accepts on
//! a thread of its own and serves on a single-threaded runtime per worker.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use actix_web::{App, HttpResponse, HttpServer, web};

use super::{BODY, Server, listen};

pub struct Actix;

impl Server for Actix {
    fn serve(&self, address: SocketAddr, threads: usize) -> io::Result<()> {
        let listener = listen(address)?;
        let app = || App::new().route("/", web::get().to(answer));
        actix_web::rt::System::new().block_on(async move {
            HttpServer::new(app)
                .workers(threads)
                .max_connections(20_000)
                .keep_alive(Duration::from_secs(300))
                .disable_signals()
                .listen(listener)?
                .run()
                .await
        })
    }
}

async fn answer() -> HttpResponse {
    HttpResponse::Ok().body(BODY.as_slice())
}
