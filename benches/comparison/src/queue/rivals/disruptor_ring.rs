//! Stands for the ring buffer of trading systems: disruptor, one producer and one polling consumer.
//! With more consumers each would see every event, which is no queue; so it has one shape only.

use std::sync::Mutex;

use disruptor::{
    BusySpin, EventPoller, Producer as _, SingleConsumerBarrier, SingleProducer,
    SingleProducerBarrier,
};

use super::{Consumer, Item, Producer, Rival};

type Sender<T> = SingleProducer<T, SingleConsumerBarrier>;
type Poller<T> = EventPoller<T, SingleProducerBarrier>;

/// The two ends until their threads take them.
pub struct Ring<T, const BATCH: usize>(Mutex<Option<Sender<T>>>, Mutex<Option<Poller<T>>>);

pub struct End<E, const BATCH: usize>(E);

impl<T: Item, const BATCH: usize> Rival<T> for Ring<T, BATCH> {
    const BATCH: usize = BATCH;
    type Producer<'a> = End<Sender<T>, BATCH>;
    type Consumer<'a> = End<Poller<T>, BATCH>;

    fn new(capacity: usize, _producers: usize) -> Self {
        let builder = disruptor::build_single_producer(capacity, T::default, BusySpin);
        let (poller, builder) = builder.new_event_poller();
        Self(Mutex::new(Some(builder.build())), Mutex::new(Some(poller)))
    }

    fn producer(&self) -> Self::Producer<'_> {
        End(self.0.lock().expect("no holder panics").take().expect("one producer"))
    }

    fn consumer(&self) -> Self::Consumer<'_> {
        End(self.1.lock().expect("no holder panics").take().expect("one consumer"))
    }
}

impl<T: Item, const BATCH: usize> Producer<T> for End<Sender<T>, BATCH> {
    fn push(&mut self, items: &[T]) -> usize {
        let published = if BATCH == 1 {
            self.0.try_publish(|event| *event = items[0]).is_ok()
        } else {
            let fill = |events| {
                std::iter::zip(events, items).for_each(|(to, item): (&mut T, _)| *to = *item)
            };
            self.0.try_batch_publish(items.len(), fill).is_ok()
        };
        if published { items.len() } else { 0 }
    }
}

impl<T: Item, const BATCH: usize> Consumer<T> for End<Poller<T>, BATCH> {
    fn pop(&mut self, mut take: impl FnMut(T)) -> usize {
        let Ok(mut events) = self.0.take(BATCH as u64) else { return 0 };
        let mut popped = 0;
        for event in &mut events {
            take(*event);
            popped += 1;
        }
        popped
    }
}
