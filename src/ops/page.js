"use strict";
// Draws what /events tells. All text from outside is set as text, never as markup.

const SECONDS = 30;
// letter of a look: [name, colour, is hatched].
const STATES = {
  L: ["leading", "--leading"],
  H: ["handling", "--handling"],
  F: ["following", "--following"],
  W: ["watching", "--watching"],
  B: ["blocked", "--blocked", true],
  P: ["set aside", "--following"],
  "-": ["away", "--following"],
};
// Those that a bar stacks, from its foot; the rest of it is time in which the thread was free.
const STACK = ["B", "H", "L", "W"];
// Rows outside the fold, if there are more threads.
const MOST_ROWS = 8;
const MOST_REASONS = 4;
const LEGEND = ["L", "H", "W", "B"];
const CARDS = { requests: "requests/s", tasks: "tasks/s", messages: "messages/s", runs: "handlers and tasks/s", timers: "timers/s, and how late" };

const byId = (id) => document.getElementById(id);
const history = new Map(); // thread number -> the last SECONDS reports
const rows = new Map();
let paused = false;
let seen = 0; // when the last event came

// What reorders text, or is no text: it would have a name change what stands beside it.
const plain = (text) => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = plain(text);
  if (name) element.className = name;
  return element;
}

// A name of the program's, whose direction changes nothing around it.
const named = (text, tag = "b") => {
  const element = make(tag);
  element.append(make("bdi", text));
  return element;
};

const colours = new Map();

// Looked up once: a strip asks hundreds of times.
function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name));
  return colours.get(name);
}

function time(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.0009995) return `${Number((seconds * 1e6).toPrecision(3))} µs`;
  if (seconds < 0.9995) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  return `${seconds.toFixed(1)} s`;
}

function count(number) {
  if (number === null || number === undefined) return "–";
  if (number >= 1e6) return `${(number / 1e6).toPrecision(3)} M`;
  if (number >= 1e4) return `${(number / 1e3).toPrecision(3)} k`;
  return number >= 100 ? String(Math.round(number)) : String(Math.round(number * 10) / 10);
}

function fit(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio];
  if (canvas.width !== Math.round(width) || canvas.height !== Math.round(height)) {
    [canvas.width, canvas.height] = [Math.round(width), Math.round(height)];
  }
  return canvas.getContext("2d");
}

function bar(context, letter, x, top, width, height) {
  const [, name, hatched] = STATES[letter];
  context.fillStyle = colour(name);
  context.fillRect(x, top, width, height);
  if (!hatched) return;
  context.strokeStyle = colour("--panel");
  context.lineWidth = Math.max(1, width / 12);
  context.save();
  context.beginPath();
  context.rect(x, top, width, height);
  context.clip();
  for (let at = Math.floor(x / 6) * 6 - height; at < x + width; at += 6) {
    context.beginPath();
    context.moveTo(at, top + height);
    context.lineTo(at + height, top);
    context.stroke();
  }
  context.restore();
}

// The part of a second that was spent on each state.
function shares(report) {
  const found = {};
  for (const letter of report.strip) found[letter] = (found[letter] || 0) + 1 / report.strip.length;
  return found;
}

// Newest at the right; a second without a report is empty.
function strip(row) {
  const context = fit(row.canvas);
  const { width, height } = row.canvas;
  context.clearRect(0, 0, width, height);
  const reports = history.get(row.number);
  const second = width / SECONDS;
  reports.forEach((report, index) => {
    const left = width - (reports.length - index) * second;
    const spent = shares(report);
    let top = height;
    for (const letter of STACK) {
      const part = (spent[letter] || 0) * height;
      top -= part;
      if (part > 0) bar(context, letter, left + 0.5, top, second - 1, part);
    }
  });
  if (row.at !== null) {
    const left = width - (reports.length - row.at) * second;
    context.strokeStyle = colour("--ink");
    context.lineWidth = 2;
    context.strokeRect(left, 1, second, height - 2);
  }
}

function tell(row) {
  const reports = history.get(row.number);
  const report = reports[row.at];
  if (!report) return;
  const parts = Object.entries(shares(report))
    .sort((a, b) => b[1] - a[1])
    .map(([letter, part]) => `${(STATES[letter] || STATES["-"])[0]} ${Math.round(100 * part)} %`);
  const runs = report.running ? `, ran ${report.running}` : "";
  const ago = reports.length - 1 - row.at;
  byId("detail").textContent = plain(
    `Thread ${row.number}, ${ago} s ago: ${parts.join(", ")}${runs}; led ${report.terms} times, ` +
      `${report.handovers} of them handed over by another thread, ${report.rescues} rescues.`,
  );
}

function select(row, at) {
  const reports = row ? history.get(row.number).length : 0;
  rows.forEach((other) => {
    const was = other.at;
    other.at = other === row && reports > 0 ? Math.min(Math.max(at, 0), reports - 1) : null;
    if (was !== other.at) strip(other);
  });
  if (row && row.at !== null) tell(row);
}

function rowOf(number) {
  let row = rows.get(number);
  if (row) return row;
  const element = make("div", undefined, "thread");
  row = { number, element, at: null, canvas: make("canvas"), now: make("bdi", "", "now") };
  element.append(make("span", String(number), "number"), row.canvas, row.now);
  row.canvas.tabIndex = 0;
  row.canvas.setAttribute("role", "img");
  row.canvas.addEventListener("mousemove", (event) => {
    const reports = history.get(number).length;
    const from = Math.floor(((row.canvas.clientWidth - event.offsetX) / row.canvas.clientWidth) * SECONDS);
    select(row, reports - 1 - from);
  });
  row.canvas.addEventListener("mouseleave", () => select(null, 0));
  row.canvas.addEventListener("focus", () => select(row, history.get(number).length - 1));
  row.canvas.addEventListener("blur", () => select(null, 0));
  row.canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined || row.at === null) return;
    event.preventDefault();
    select(row, row.at + step);
  });
  rows.set(number, row);
  history.set(number, history.get(number) || []);
  return row;
}

function showThreads(event) {
  for (const thread of event.threads || []) {
    const row = rowOf(thread.thread);
    const reports = history.get(thread.thread);
    reports.push(thread);
    if (reports.length > SECONDS) reports.shift();
    row.element.dataset.state = thread.state;
    const runs = thread.running ? `: ${short(thread.running)}` : "";
    const long = thread.state === "blocked" ? ` for ${time(thread.seconds)}` : "";
    row.now.textContent = plain(`${thread.state}${long}${runs}`);
    row.now.title = plain(thread.running || "");
    row.element.dataset.rescues = String(Number(row.element.dataset.rescues || 0) + thread.rescues);
    row.canvas.setAttribute("aria-label", `thread ${thread.thread}: ${row.now.textContent}`);
  }
  order();
  rows.forEach((row) => row.canvas.clientWidth && strip(row));
}

// The end of a path tells more than its beginning.
const short = (name) => (name.includes("<") ? name : name.split("::").slice(-2).join("::"));

// For how long a thread was not free lately; blocked ones come before all others.
function weight(row) {
  const reports = history.get(row.number);
  const last = reports[reports.length - 1];
  const blocked = last && last.state === "blocked" ? 1e6 + last.seconds : 0;
  if (blocked || rows.size <= MOST_ROWS) return blocked;
  return reports.reduce((sum, report) => sum + STACK.reduce((all, it) => all + (shares(report)[it] || 0), 0), 0);
}

// Nothing moves under a pointer, or from under the keyboard.
function order() {
  const lists = [byId("threads"), byId("others").querySelector("div")];
  if (lists.some((list) => list.matches(":hover") || list.contains(document.activeElement))) return;
  const sorted = [...rows.values()]
    .map((row) => [row, weight(row)])
    .sort((a, b) => b[1] - a[1] || a[0].number - b[0].number)
    .map(([row]) => row.element);
  const parts = [sorted.slice(0, MOST_ROWS), sorted.slice(MOST_ROWS)];
  parts.forEach((part, index) => {
    const list = lists[index];
    if (part.some((element, at) => list.children[at] !== element)) list.replaceChildren(...part);
  });
  byId("others").hidden = parts[1].length === 0;
  const states = {};
  for (const element of parts[1]) states[element.dataset.state] = (states[element.dataset.state] || 0) + 1;
  const told = Object.entries(states).map(([name, threads]) => `${threads} ${name}`);
  byId("others").querySelector("summary").textContent = `${parts[1].length} more threads: ${told.join(", ")}`;
}

function fill(id, items, none, each) {
  const list = byId(id);
  list.replaceChildren(...(items.length ? items.map(each) : [make("li", none)]));
}

function cardOf(id, title, figure, ...lines) {
  const card = make("div", undefined, "card");
  card.id = `card-${id}`;
  card.append(make("span", title), make("b", figure));
  for (const [text, name] of lines.filter((line) => line)) card.append(make("span", text, name), make("br"));
  return card;
}

// Rescues of all threads, in a second.
function rescues() {
  const all = [...history.values()];
  const longest = Math.max(1, ...all.map((reports) => reports.length));
  return all.flat().reduce((sum, report) => sum + report.rescues, 0) / longest;
}

function showCards(figures) {
  const { cards, process } = figures;
  const shown = Object.entries(CARDS).filter(([name]) => cards[name]);
  const memory = process.memory === null ? "–" : `${(process.memory / 1048576).toFixed(1)} MiB`;
  byId("cards").replaceChildren(
    ...shown.map(([name, title]) => {
      const { rate, p50, p99, waits_p99: waits, failed, failing } = cards[name];
      const bad = name === "requests" ? "with 5xx" : "failed";
      return cardOf(
        name,
        title,
        count(rate),
        (p50 !== null || p99 !== null) && [`p50 ${time(p50)} · p99 ${time(p99)}`],
        waits !== null && [`waited before: p99 ${time(waits)}`],
        failed > 0 && [`${count(failing)} ${bad} per s, ${count(failed)} so far`, failing > 0 ? "bad" : ""],
      );
    }),
    cardOf("rescues", "rescues/s", count(rescues()), ["over 30 s: a thread stepped in as the watch"]),
    cardOf("process", "process", `${(process.cpu * 100).toFixed(0)} % CPU`, [
      `${memory} · ${count(process.descriptors)} descriptors`,
    ]),
  );
}

const sorting = new Map(); // name of a table -> [column, is descending]

function tableOf(table) {
  const id = `table-${table.name.replaceAll(" ", "-")}`;
  let box = byId(id);
  if (box) return box;
  box = make("details");
  box.id = id;
  box.open = true;
  sorting.set(table.name, [1, !table.ascending]);
  const head = make("tr");
  [{ name: "" }, ...table.columns].forEach((column, at) => {
    const cell = make("th");
    cell.scope = "col";
    const button = make("button", column.name || "name");
    button.type = "button";
    button.addEventListener("click", () => {
      const [column, down] = sorting.get(table.name);
      sorting.set(table.name, [at, column === at ? !down : at > 0]);
      fillTable(box.table);
    });
    cell.append(button);
    head.append(cell);
  });
  const element = make("table");
  const top = make("thead");
  top.append(head);
  element.append(top, make("tbody"));
  box.append(make("summary"), element);
  byId("tables").append(box);
  return box;
}

function fillTable(table) {
  const box = tableOf(table);
  box.table = table;
  const [at, down] = sorting.get(table.name);
  box.querySelectorAll("th").forEach((cell, index) =>
    cell.setAttribute("aria-sort", index !== at ? "none" : down ? "descending" : "ascending"),
  );
  const value = (row) => (at === 0 ? row.name : (row.cells[at - 1] ?? -1));
  const sorted = [...table.rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1) || a.name.localeCompare(b.name);
  });
  const more = table.left_out ? `, ${table.left_out} more are not shown` : "";
  box.querySelector("summary").textContent = `${table.name[0].toUpperCase()}${table.name.slice(1)} (${table.rows.length}${more})`;
  box.querySelector("tbody").replaceChildren(
    ...sorted.map((row) => {
      const line = make("tr");
      line.dataset.name = row.name;
      line.append(named(row.name, "td"));
      row.cells.forEach((cell, index) => {
        const { is_time, is_text } = table.columns[index];
        line.append(is_text ? named(cell, "td") : make("td", is_time ? time(cell) : count(cell)));
      });
      return line;
    }),
  );
}

let curves = null;

function showCurves() {
  byId("curves").hidden = !curves || curves.charts.length === 0;
  if (byId("curves").hidden) return;
  byId("curves").querySelector("div").replaceChildren(
    ...curves.charts.map((chart) => {
      const box = make("div", undefined, "curve");
      const lines = chart.lines.map((line) => [line.name, line.values]);
      const most = Math.max(...lines.flatMap(([, values]) => values.map((value) => value ?? 0)));
      const told = (value) => (chart.is_time ? time(value) : count(value));
      const head = make("h3", chart.name);
      head.append(make("span", `up to ${told(most)}`));
      const canvas = make("canvas");
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", plain(`${chart.name}: ${lines.map(([name]) => name).join(", ")}`));
      const names = make("ul");
      lines.forEach(([name, values], index) => {
        const item = make("li");
        item.style.setProperty("--line-colour", `var(--c${index % 8})`);
        item.append(make("bdi", name), ` ${told(values[values.length - 1])}`);
        names.append(item);
      });
      box.append(head, canvas, names);
      box.draw = () => draw(canvas, lines, most);
      return box;
    }),
  );
  byId("curves").querySelectorAll(".curve").forEach((box) => box.draw());
}

function draw(canvas, lines, most) {
  const context = fit(canvas);
  const { width, height } = canvas;
  const step = width / (curves.most - 1);
  lines.forEach(([, values], index) => {
    context.strokeStyle = colour(`--c${index % 8}`);
    context.lineWidth = Math.max(1.5, height / 60);
    // Told apart without colour, too.
    context.setLineDash([[], [6, 3], [2, 3], [10, 3, 2, 3]][index % 4]);
    context.beginPath();
    let isDown = false;
    values.forEach((value, at) => {
      if (value === null) return (isDown = false);
      const x = width - (values.length - 1 - at) * step;
      const y = height - 2 - (most > 0 ? value / most : 0) * (height - 4);
      if (isDown) context.lineTo(x, y);
      else context.moveTo(x - (values.length === 1 ? 4 : 0), y);
      if (values.length === 1) context.lineTo(x, y);
      isDown = true;
    });
    context.stroke();
  });
}

async function readCurves() {
  if (paused || document.body.classList.contains("stale")) return;
  const answer = await fetch("curves.json", { headers: authorized(), cache: "no-store" });
  if (!answer.ok) return;
  curves = await answer.json();
  showCurves();
}

// What is told of one rule; of what is not zero, but for what always says something.
function ruleOf(kind, rule) {
  const item = make("li");
  const stored = rule.stream !== null;
  const figures =
    kind === "export"
      ? [
          [rule.waiting, "waiting", true],
          [rule.in_flight, "in flight", stored],
          [rule.sent, "sent", true],
          [rule.stored, "stored", stored],
          [rule.sent_again, "sent again"],
          [rule.dropped, "dropped"],
        ]
      : [
          [rule.lag, "lagging", stored],
          [rule.in_flight, "in flight", stored],
          [rule.published, "published", true],
          [rule.acknowledged, "acknowledged", stored],
          [rule.again, "again"],
          [rule.dead, "dead"],
          [rule.duplicates, "duplicates"],
        ];
  figures.push([rule.refused, "refused"]);
  const told = figures.filter(([figure, , always]) => always || figure > 0);
  item.append(make("span", `${kind} `, "kind"), named(rule.pattern));
  if (stored) item.append(make("span", " by ", "kind"), named(rule.stream, "span"));
  item.append(` ${told.map(([figure, name]) => `${count(figure)} ${name}`).join(", ")}`);
  item.dataset.name = rule.pattern;
  return item;
}

function bridgeOf(bridge) {
  const box = make("div", undefined, "bridge");
  box.dataset.name = bridge.name;
  box.dataset.state = bridge.connected ? "connected" : "away";
  const state = bridge.connected ? `connected to ${bridge.server}` : "not connected";
  box.append(named(bridge.name), make("span", ` ${state}`, "state"));
  if (bridge.reason) box.append(make("span", `: ${bridge.reason}`, "state"));
  const again = Math.max(0, bridge.connects - 1);
  const others = [`${count(again)} reconnects`];
  if (bridge.requests_out + bridge.requests_in > 0) {
    others.push(`${count(bridge.requests_out)} requests out, ${count(bridge.requests_in)} in`);
  }
  if (bridge.lost > 0) others.push(`${count(bridge.lost)} lost`);
  box.append(make("div", others.join(" · "), "kind"));
  const rules = make("ul");
  rules.append(...bridge.exports.map((rule) => ruleOf("export", rule)));
  rules.append(...bridge.imports.map((rule) => ruleOf("import", rule)));
  box.append(rules);
  return box;
}

function historyOf(history) {
  const box = make("div", undefined, "bridge");
  box.dataset.name = history.pattern;
  box.dataset.state = history.reason ? "away" : "connected";
  const state = history.reason ? `not written: ${history.reason}` : "written";
  box.append(named(history.pattern), make("span", ` ${state}`, "state"));
  const figures = [`${count(history.recorded)} recorded`, `${count(history.waiting)} waiting`];
  if (history.given_up > 0) figures.push(`${count(history.given_up)} given up`);
  box.append(make("div", figures.join(", "), "kind"));
  return box;
}

function showAll(id, list, boxOf) {
  byId(id).hidden = list.length === 0;
  byId(id).querySelector("div").replaceChildren(...list.map(boxOf));
}

function show(event) {
  byId("pool").textContent = plain(event.pool);
  const health = byId("health");
  const well = event.health.live && event.health.ready;
  health.className = well && !event.health.reasons.length ? "well" : "ill";
  const word = well ? (event.health.reasons.length ? "degraded" : "ready") : "not ready";
  setState(word);
  document.title = plain(`${word} · ${event.pool} · paceline`);
  byId("summary").textContent = plain(event.summary);
  const { reasons } = event.health;
  const more = reasons.length > MOST_REASONS ? ` · and ${reasons.length - MOST_REASONS} more` : "";
  byId("reasons").textContent = plain(reasons.slice(0, MOST_REASONS).join(" · ") + more);
  seen = Date.now();
  stale(false);
  showThreads(event);
  showCards(event.figures);
  event.figures.tables.forEach(fillTable);
  showAll("bridges", event.bridges || [], bridgeOf);
  showAll("histories", event.histories || [], historyOf);
  fill("blocked", event.blocked.slice(0, MOST_ROWS), "nothing", (it) => {
    const item = make("li", `thread ${it.thread}: `);
    item.append(make("bdi", it.name || "a handler"), ` for ${time(it.seconds)}`);
    item.dataset.name = it.name;
    return item;
  });
  if (event.blocked.length > MOST_ROWS) byId("blocked").append(make("li", `and ${event.blocked.length - MOST_ROWS} more`));
  fill("waiting", event.figures.waiting, "nothing", (it) => {
    const item = make("li", undefined);
    const room = it.capacity === null ? "" : ` of ${count(it.capacity)}`;
    const age = it.oldest === null ? "" : `, the oldest for ${time(it.oldest)}`;
    item.append(make("span", `${it.kind} `, "kind"), named(it.name), ` ${count(it.count)}${room}${age}`);
    if (it.lost > 0) item.append(make("span", `, ${count(it.lost)} lost so far`, "bad"));
    item.dataset.name = it.name;
    return item;
  });
  const all = event.figures.waiting_in_all;
  const late = event.late ? `, ${event.late.what} for ${time(event.late.seconds)}` : "";
  byId("waiting-title").textContent = `Waiting and lagging: ${count(all)} in all${late}`;
  fill("errors", event.errors.errors, "none", (it) => {
    const item = make("li");
    const when = make("time", (it.time || "").slice(11, 19));
    item.append(when, ` ${plain(it.level)} ${plain(it.event)}: `, make("bdi", it.message));
    const fields = Object.entries(it.fields || {}).map(([name, value]) => `${name}=${value}`);
    if (fields.length) item.append(" (", make("bdi", fields.join(", ")), ")");
    if (it.times > 1) item.append(`, ${count(it.times)} times`);
    return item;
  });
}

// Figures of the past are grey, and say of when they are.
function stale(is) {
  document.body.classList.toggle("stale", is && seen > 0);
  const when = new Date(seen).toTimeString().slice(0, 8);
  byId("seen").textContent = is && seen > 0 ? `last seen ${when}` : "";
}

function legend() {
  byId("legend").replaceChildren();
  for (const letter of LEGEND) {
    const item = make("li");
    const canvas = make("canvas");
    item.append(canvas, STATES[letter][0]);
    byId("legend").append(item);
    bar(fit(canvas), letter, 0, 0, canvas.width, canvas.height);
  }
  byId("legend").append(make("li", "empty: free, as a follower"));
}

// Only what changes is announced, and reasons change each second.
function setState(text) {
  if (byId("health").textContent !== text) byId("health").textContent = text;
}

function state(text) {
  byId("health").className = "ill";
  byId("reasons").textContent = "";
  setState(text);
  document.title = plain(`${text} · ${byId("pool").textContent} · paceline`);
  stale(true);
}

function authorized() {
  const token = sessionStorage.getItem("paceline-token");
  return token ? { Authorization: `Bearer ${token}` } : {};
}

// EventSource cannot send a token.
async function watch() {
  const answer = await fetch("events", { headers: authorized(), cache: "no-store" });
  byId("token-form").hidden = answer.status !== 401;
  if (answer.status === 401 || answer.status === 403) {
    state((await answer.text()).trim());
    if (answer.status === 401) byId("token").focus();
    return false;
  }
  if (!answer.ok) throw new Error((await answer.text()).trim() || String(answer.status));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  // Who comes gets what is kept: it replaces what was seen before.
  history.forEach((reports) => (reports.length = 0));
  for (let rest = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return true;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      // To come back by itself would send another away.
      if (event.startsWith("event: replaced")) {
        state("a newer viewer has this one's place; reload the page to watch again");
        return false;
      }
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (data && !paused) show(JSON.parse(data.slice(6)));
    }
    if (events.length && !curves) readCurves();
  }
}

let isWatching = false;

async function watchOn() {
  if (isWatching) return;
  isWatching = true;
  for (;;) {
    try {
      if (!(await watch())) break;
      state("the connection has ended; trying again");
    } catch (error) {
      state(`not connected: ${error.message}; trying again`);
    }
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
  isWatching = false;
}

byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  byId("pause").textContent = paused ? "Go on" : "Pause";
  stale(paused);
});
// Links cannot send a token: what they lead to is fetched, and shown or saved. Of a trace it is said what is in it.
document.querySelector("nav").addEventListener("click", async (event) => {
  const token = sessionStorage.getItem("paceline-token");
  const link = event.target.closest("a");
  if (!link || (!token && !link.download)) return;
  event.preventDefault();
  if (link.download) byId("trace-note").textContent = "recording";
  const answer = await fetch(link.href, { headers: authorized() });
  if (link.download) {
    const span = answer.headers.get("Paceline-Trace");
    byId("trace-note").textContent = answer.ok && span ? `the trace has ${span}` : plain((await answer.text()).trim());
    if (!answer.ok) return;
  }
  const shown = make("a");
  shown.href = URL.createObjectURL(await answer.blob());
  if (link.download) shown.download = link.download;
  else shown.target = "_blank";
  shown.click();
});
byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("paceline-token", byId("token").value);
  watchOn();
});
function redraw() {
  legend();
  rows.forEach((row) => row.canvas.clientWidth && strip(row));
  byId("curves").querySelectorAll(".curve").forEach((box) => box.draw());
}

window.addEventListener("resize", redraw);
byId("others").addEventListener("toggle", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours.clear();
  redraw();
});
// A feed that is silent has not ended for the browser.
setInterval(() => seen && Date.now() - seen > 3500 && stale(true), 1000);
setInterval(() => readCurves().catch(() => {}), 5000);
legend();
watchOn();
