//! Stands for the runtime that most Rust servers use: tokio, multi-threaded, a task per connection.
//! With `block_in_place` its author knows which requests are slow and says so; without, a slow
//! request holds up the worker that meets it, as an unexpected one does.

use std::io;
use std::net::TcpListener;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Options, READ_BUFFER, SLOW_MARK, Server, Slow};

pub struct Tokio {
    pub block_in_place: bool,
}

impl Server for Tokio {
    fn serve(&self, listener: TcpListener, options: Options) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let block_in_place = self.block_in_place;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads)
            .enable_io()
            .build()?;
        // The accepting task is spawned too, so that it runs on a worker and not beside them.
        let accepting = runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                tokio::spawn(echo(stream, options.slow, block_in_place));
            }
        });
        runtime.block_on(accepting).map_err(io::Error::other)?
    }
}

async fn echo(mut stream: TcpStream, slow: Slow, block_in_place: bool) -> io::Result<()> {
    let mut buffer = vec![0; READ_BUFFER];
    loop {
        let n = stream.read(&mut buffer).await?;
        if n == 0 {
            return Ok(());
        }
        if block_in_place && buffer[0] == SLOW_MARK {
            tokio::task::block_in_place(|| slow.hold(&buffer[..n]));
        } else {
            slow.hold(&buffer[..n]);
        }
        stream.write_all(&buffer[..n]).await?;
    }
}
