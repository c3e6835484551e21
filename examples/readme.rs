use paceline::{Flow, Pool};
use std::os::unix::net::UnixDatagram;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::new()?; // a thread per CPU
    println!("a task says {}", pool.submit(|| 6 * 7)?.wait()?);

    let (inside, outside) = UnixDatagram::pair()?;
    inside.set_nonblocking(true)?;
    let shout = pool.register(inside, |socket, _| {
        let mut bytes = [0; 64]; // as a rule, this is the thread that saw the message come
        while let Ok(size) = socket.recv(&mut bytes) {
            bytes.make_ascii_uppercase();
            socket.send(&bytes[..size]).expect("the other end has room");
        }
        Flow::Wait // nothing is left to read: call me again when there is
    })?;

    outside.send(b"hello")?;
    let mut bytes = [0; 5];
    outside.recv(&mut bytes)?;
    println!("a handler says {}", std::str::from_utf8(&bytes)?);
    drop(shout.deregister()?); // gives the socket back
    Ok(())
}
