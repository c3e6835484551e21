//! What the programs of a round have noted, and what must hold of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// What becomes of a task, by its number.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    Plain,
    /// Works for a while.
    Slow,
    /// Its first attempt fails.
    Again,
    /// Fails for good.
    Never,
    /// Is cancelled.
    Cancelled,
    /// Has a unique id.
    Unique,
}

/// Of "t12-345".
pub fn kind(question: &str) -> Kind {
    let number = question.rsplit('-').next().and_then(|text| text.parse::<u64>().ok());
    match number.unwrap_or(0) % 16 {
        3 | 11 => Kind::Slow,
        5 => Kind::Again,
        7 => Kind::Never,
        9 => Kind::Cancelled,
        13 => Kind::Unique,
        _ => Kind::Plain,
    }
}

pub fn answer(question: &str) -> String {
    format!("answer-to-{question}")
}

/// A submission whose task has this id. Of what ran: an attempt.
#[derive(Clone, Debug)]
pub struct Task {
    pub question: String,
    pub id: String,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub question: String,
    pub id: String,
    pub status: String,
    pub value: String,
}

/// All lives of all programs together.
#[derive(Clone, Default)]
pub struct Records {
    pub offered_messages: BTreeSet<String>,
    pub accepted_messages: BTreeSet<String>,
    /// By the key, by the payload.
    pub received: Vec<(String, String)>,
    pub offered_tasks: BTreeSet<String>,
    pub accepted_tasks: Vec<Task>,
    pub ran: Vec<Task>,
    pub answers: Vec<Answer>,
    /// Of whom somebody wanted to cancel them, and was not told that it is too late: they need not have a result.
    pub cancelled: BTreeSet<String>,
}

/// The words of each whole line of all files of this name: the last line of one who was killed may have been cut off.
pub fn lines(folder: &Path, name: &str) -> Vec<Vec<String>> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_one = entry.file_name().to_string_lossy().split('.').next() == Some(name);
        let text = if is_one { fs::read_to_string(entry.path()) } else { Ok(String::new()) };
        let text = text.unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let words = |line: &str| line.split(' ').map(str::to_owned).collect();
        lines.extend(whole.lines().map(words));
    }
    lines
}

impl Records {
    pub fn read(folder: &Path) -> Self {
        let set =
            |name: &str| lines(folder, name).into_iter().map(|line| line[0].clone()).collect();
        let tasks = |name: &str| {
            let task = |line: Vec<String>| Task { question: line[0].clone(), id: line[1].clone() };
            lines(folder, name).into_iter().map(task).collect()
        };
        let answer = |line: Vec<String>| {
            let [question, id, status, value] = <[String; 4]>::try_from(line).expect("four words");
            Answer { question, id, status, value }
        };
        let received = lines(folder, "received").into_iter();
        let late: BTreeSet<String> = set("cancelled-too-late");
        Self {
            offered_messages: set("offered-messages"),
            accepted_messages: set("accepted-messages"),
            received: received.map(|line| (line[0].clone(), line[1].clone())).collect(),
            offered_tasks: set("offered-tasks"),
            accepted_tasks: tasks("accepted-tasks"),
            ran: tasks("ran"),
            answers: lines(folder, "answers").into_iter().map(answer).collect(),
            cancelled: &set("cancelled") - &late,
        }
    }

    /// The accepted tasks that must have a result; and have run, if that does not say that they were cancelled.
    fn owed(&self) -> impl Iterator<Item = &Task> {
        self.accepted_tasks.iter().filter(|task| !self.cancelled.contains(&task.question))
    }

    /// What is not as it must be. `is_kept`: the broker has kept what it had.
    pub fn differences(&self, is_kept: bool) -> Vec<String> {
        let mut all = self.mixed_up();
        if is_kept {
            all.extend(self.lost());
            all.extend(self.strange());
        }
        all
    }

    /// Who has got what is another's.
    fn mixed_up(&self) -> Vec<String> {
        let is_its_own = |answer: &&Answer| match (kind(&answer.question), answer.status.as_str()) {
            (Kind::Never, "Failed") => true,
            (Kind::Never, _) => false,
            (_, "Completed") => answer.value == self::answer(&answer.question),
            (Kind::Cancelled, "Cancelled") => true,
            _ => false,
        };
        let answers = self.answers.iter().filter(|answer| !is_its_own(answer));
        let messages = self.received.iter().filter(|(key, payload)| key != payload);
        let mut ids = BTreeMap::new();
        let accepted = self.accepted_tasks.iter().chain(&self.ran);
        let answered = self.answers.iter().map(|answer| (&answer.id, &answer.question));
        for (id, question) in accepted.map(|task| (&task.id, &task.question)).chain(answered) {
            ids.entry(id).or_insert_with(BTreeSet::new).insert(question);
        }
        let ids = ids.iter().filter(|(_, questions)| questions.len() > 1);
        all_of([
            some("answers are another question's", answers.map(|one| format!("{one:?}"))),
            some("messages are another key's", messages.map(|one| format!("{one:?}"))),
            some("ids mean several tasks", ids.map(|one| format!("{one:?}"))),
        ])
    }

    fn not_received(&self) -> impl Iterator<Item = &String> {
        let received: BTreeSet<&String> = self.received.iter().map(|(key, _)| key).collect();
        self.accepted_messages.iter().filter(move |key| !received.contains(key))
    }

    pub fn has_received_all(&self) -> bool {
        self.not_received().next().is_none()
    }

    /// What was accepted and is nowhere.
    fn lost(&self) -> Vec<String> {
        let ran: BTreeSet<&String> = self.ran.iter().map(|task| &task.question).collect();
        let ended: BTreeSet<&String> = self.answers.iter().map(|one| &one.question).collect();
        let cancelled = self.answers.iter().filter(|answer| answer.status == "Cancelled");
        let cancelled: BTreeSet<&String> = cancelled.map(|one| &one.question).collect();
        let need_not =
            |task: &&Task| ran.contains(&task.question) || cancelled.contains(&task.question);
        let tasks = self.owed().filter(|task| !need_not(task));
        let answers = self.owed().filter(|task| !ended.contains(&task.question));
        all_of([
            some("accepted messages were not received", self.not_received().cloned()),
            some("accepted tasks did not run", tasks.map(|task| format!("{task:?}"))),
            some("accepted tasks have no result", answers.map(|task| format!("{task:?}"))),
        ])
    }

    /// What was there though nobody has asked for it.
    fn strange(&self) -> Vec<String> {
        let messages = self.received.iter().filter(|one| !self.offered_messages.contains(&one.0));
        let tasks = self.ran.iter().filter(|task| !self.offered_tasks.contains(&task.question));
        all_of([
            some("messages came that nobody published", messages.map(|one| one.0.clone())),
            some("tasks ran that nobody submitted", tasks.map(|task| format!("{task:?}"))),
        ])
    }

    /// How much came or ran more than once.
    pub fn repeated(&self) -> usize {
        let keys: BTreeSet<&String> = self.received.iter().map(|(key, _)| key).collect();
        let tasks: BTreeSet<&String> = self.ran.iter().map(|task| &task.question).collect();
        self.received.len() - keys.len() + self.ran.len() - tasks.len()
    }
}

/// A sentence about these, with the first of them, if there are any.
fn some(what: &str, those: impl Iterator<Item = String>) -> Option<String> {
    let those: Vec<String> = those.collect();
    let first = those.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    (!those.is_empty()).then(|| format!("{} {what}: {first}", those.len()))
}

fn all_of<const N: usize>(some: [Option<String>; N]) -> Vec<String> {
    some.into_iter().flatten().collect()
}

/// A way to falsify records, so that a comparison is seen to fail.
pub struct Fault {
    pub name: &'static str,
    /// Whether it is noticed though the broker has not kept what it had.
    is_mixture: bool,
    /// False: these records have not got what it takes.
    falsify: fn(&mut Records) -> bool,
}

pub const FAULTS: &[Fault] = &[
    Fault { name: "lose", is_mixture: false, falsify: lose },
    Fault { name: "lose-message", is_mixture: false, falsify: lose_message },
    Fault { name: "lose-answer", is_mixture: false, falsify: lose_answer },
    Fault { name: "mix", is_mixture: true, falsify: mix },
    Fault { name: "mix-message", is_mixture: true, falsify: mix_message },
    Fault { name: "twice", is_mixture: true, falsify: twice },
    Fault { name: "fail", is_mixture: true, falsify: fail },
    Fault { name: "stranger", is_mixture: false, falsify: stranger },
    Fault { name: "stranger-message", is_mixture: false, falsify: stranger_message },
];

pub fn fault(name: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name == name)
}

impl Fault {
    pub fn falsify(&self, records: &mut Records) {
        (self.falsify)(records);
    }

    /// Whether these records, which are right, are found to be wrong with this fault.
    pub fn is_noticed(&self, records: &Records, is_kept: bool) -> bool {
        let mut falsified = records.clone();
        let applies = (is_kept || self.is_mixture) && (self.falsify)(&mut falsified);
        !applies || !falsified.differences(is_kept).is_empty()
    }
}

fn lose(records: &mut Records) -> bool {
    let is_to_run = |task: &&Task| kind(&task.question) != Kind::Cancelled;
    let lost = records.owed().find(is_to_run).map(|task| task.question.clone());
    let Some(lost) = lost else { return false };
    records.ran.retain(|task| task.question != lost);
    true
}

fn lose_message(records: &mut Records) -> bool {
    let Some(lost) = records.accepted_messages.last() else { return false };
    records.received.retain(|(key, _)| key != lost);
    true
}

fn lose_answer(records: &mut Records) -> bool {
    let Some(lost) = records.owed().next().map(|task| task.question.clone()) else { return false };
    records.answers.retain(|answer| answer.question != lost);
    true
}

fn completed(records: &mut Records) -> impl Iterator<Item = &mut Answer> {
    records.answers.iter_mut().filter(|answer| answer.status == "Completed")
}

fn mix(records: &mut Records) -> bool {
    let mut two = completed(records);
    let (Some(one), Some(other)) = (two.next(), two.next()) else { return false };
    std::mem::swap(&mut one.value, &mut other.value);
    true
}

fn mix_message(records: &mut Records) -> bool {
    let [one, .., other] = &mut records.received[..] else { return false };
    std::mem::swap(&mut one.1, &mut other.1);
    one.0 != other.0
}

/// Two tasks have one id.
fn twice(records: &mut Records) -> bool {
    let [one, .., other] = &mut records.ran[..] else { return false };
    other.id.clone_from(&one.id);
    one.question != other.question
}

/// One that can only succeed has failed.
fn fail(records: &mut Records) -> bool {
    let failed = completed(records).next();
    failed.map(|answer| answer.status = "Failed".into()).is_some()
}

fn stranger(records: &mut Records) -> bool {
    records.ran.push(Task { question: "nobody".into(), id: "nobody".into() });
    true
}

fn stranger_message(records: &mut Records) -> bool {
    records.received.push(("nobody".into(), "nobody".into()));
    true
}
