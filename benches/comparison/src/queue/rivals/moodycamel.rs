//! Stands for the fastest queue that C++ offers: moodycamel's ConcurrentQueue with tokens, one by
//! one and in bulk. It is unbounded; a look at its size now and then holds it to the capacity that
//! it was made with, so that it need not allocate. (`try_enqueue`, which never does, lets one
//! producer take all blocks and starve another for good.) One by one it pays a call into C++ per
//! item.

use std::ffi::c_void;
use std::marker::PhantomData;

use super::{Consumer, Item, Producer, Rival};

/// The functions of cpp/shim_moodycamel.cpp for one size of item.
struct Functions {
    new: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    producer: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    consumer: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    size: unsafe extern "C" fn(*mut c_void) -> usize,
    push: unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_void, usize),
    pop: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, usize) -> usize,
}

macro_rules! functions {
    ($table:ident: $new:ident $free:ident $producer:ident $consumer:ident $size:ident $push:ident $pop:ident) => {
        unsafe extern "C" {
            fn $new(capacity: usize, producers: usize) -> *mut c_void;
            fn $free(queue: *mut c_void);
            fn $producer(queue: *mut c_void) -> *mut c_void;
            fn $consumer(queue: *mut c_void) -> *mut c_void;
            fn $size(queue: *mut c_void) -> usize;
            fn $push(queue: *mut c_void, token: *mut c_void, items: *const c_void, n: usize);
            fn $pop(queue: *mut c_void, token: *mut c_void, to: *mut c_void, n: usize) -> usize;
        }

        static $table: Functions = Functions {
            new: $new,
            free: $free,
            producer: $producer,
            consumer: $consumer,
            size: $size,
            push: $push,
            pop: $pop,
        };
    };
}

functions!(EIGHT:
    moodycamel_queue8_new
    moodycamel_queue8_free
    moodycamel_queue8_producer_new
    moodycamel_queue8_consumer_new
    moodycamel_queue8_size
    moodycamel_queue8_push
    moodycamel_queue8_pop
);
functions!(FIFTY_SIX:
    moodycamel_queue56_new
    moodycamel_queue56_free
    moodycamel_queue56_producer_new
    moodycamel_queue56_consumer_new
    moodycamel_queue56_size
    moodycamel_queue56_push
    moodycamel_queue56_pop
);

unsafe extern "C" {
    fn moodycamel_producer_free(token: *mut c_void);
    fn moodycamel_consumer_free(token: *mut c_void);
}

fn functions<T>() -> &'static Functions {
    if size_of::<T>() == 8 { &EIGHT } else { &FIFTY_SIX }
}

/// Items between two looks at the size.
const CREDIT: usize = 64;

/// A live queue of `T`s.
pub struct Queue<T, const BATCH: usize> {
    queue: *mut c_void,
    capacity: usize,
    items: PhantomData<T>,
}

// SAFETY: the queue's functions may be called by any thread.
unsafe impl<T: Send, const BATCH: usize> Sync for Queue<T, BATCH> {}

pub struct Sender<'a, T, const BATCH: usize> {
    queue: &'a Queue<T, BATCH>,
    token: *mut c_void,
    credit: usize,
}

pub struct Receiver<'a, T, const BATCH: usize> {
    queue: &'a Queue<T, BATCH>,
    token: *mut c_void,
}

impl<T: Item, const BATCH: usize> Rival<T> for Queue<T, BATCH> {
    const BATCH: usize = BATCH;
    type Producer<'a> = Sender<'a, T, BATCH>;
    type Consumer<'a> = Receiver<'a, T, BATCH>;

    fn new(capacity: usize, producers: usize) -> Self {
        // SAFETY: gives a new queue, which `drop` frees.
        let queue = unsafe { (functions::<T>().new)(capacity, producers) };
        Self { queue, capacity, items: PhantomData }
    }

    fn producer(&self) -> Self::Producer<'_> {
        // SAFETY: the queue is live; the token is freed before it.
        let token = unsafe { (functions::<T>().producer)(self.queue) };
        Sender { queue: self, token, credit: 0 }
    }

    fn consumer(&self) -> Self::Consumer<'_> {
        // SAFETY: the queue is live; the token is freed before it.
        Receiver { queue: self, token: unsafe { (functions::<T>().consumer)(self.queue) } }
    }
}

impl<T: Item, const BATCH: usize> Producer<T> for Sender<'_, T, BATCH> {
    fn push(&mut self, items: &[T]) -> usize {
        let (functions, queue) = (functions::<T>(), self.queue.queue);
        if self.credit < items.len() {
            // SAFETY: the queue is live.
            if unsafe { (functions.size)(queue) } >= self.queue.capacity {
                return 0;
            }
            self.credit = CREDIT;
        }
        self.credit -= items.len();
        // SAFETY: queue and token are live, the token is this thread's, and the items, of the size
        // that the functions are for, are only read.
        unsafe { (functions.push)(queue, self.token, items.as_ptr().cast(), items.len()) };
        items.len()
    }
}

impl<T: Item, const BATCH: usize> Consumer<T> for Receiver<'_, T, BATCH> {
    fn pop(&mut self, take: impl FnMut(T)) -> usize {
        let mut items = [T::default(); BATCH];
        let into = items.as_mut_ptr().cast();
        // SAFETY: queue and token are live, the token is this thread's, and there is room for
        // BATCH items of the size that the functions are for.
        let popped = unsafe { (functions::<T>().pop)(self.queue.queue, self.token, into, BATCH) };
        items[..popped].iter().copied().for_each(take);
        popped
    }
}

impl<T, const BATCH: usize> Drop for Sender<'_, T, BATCH> {
    fn drop(&mut self) {
        // SAFETY: the token is this thread's and its queue still lives.
        unsafe { moodycamel_producer_free(self.token) }
    }
}

impl<T, const BATCH: usize> Drop for Receiver<'_, T, BATCH> {
    fn drop(&mut self) {
        // SAFETY: the token is this thread's and its queue still lives.
        unsafe { moodycamel_consumer_free(self.token) }
    }
}

impl<T, const BATCH: usize> Drop for Queue<T, BATCH> {
    fn drop(&mut self) {
        // SAFETY: every token is freed and nobody has the queue after this.
        unsafe { (functions::<T>().free)(self.queue) }
    }
}
