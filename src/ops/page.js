"use strict";
// Draws what /events tells. All text from outside is set as text, never as markup.

const SECONDS = 30;
// letter of a strip: [name, colour, part of the height, is hatched]. The height tells them apart without colour.
const STATES = {
  L: ["leading", "--leading", 1, false],
  H: ["handling", "--handling", 0.62, false],
  F: ["following", "--following", 0.16, false],
  W: ["watching", "--watching", 0.34, false],
  B: ["blocked", "--blocked", 1, true],
  P: ["set aside", "--following", 0.08, false],
  "-": ["away", "--following", 0, false],
};
const LEGEND = ["L", "H", "W", "F", "B"];
const CARDS = { requests: "requests/s", tasks: "tasks/s", messages: "messages/s", runs: "handlers and tasks/s" };

const byId = (id) => document.getElementById(id);
const history = new Map(); // thread number -> the last SECONDS reports
const rows = new Map();
let paused = false;

function make(tag, text, name) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
}

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

function block(context, letter, x, width, height) {
  const [, name, part, hatched] = STATES[letter] || STATES["-"];
  const top = height * (1 - part);
  context.fillStyle = colour(name);
  context.fillRect(x, top, width, height - top);
  if (!hatched) return;
  context.strokeStyle = colour("--panel");
  context.lineWidth = Math.max(1, height / 14);
  context.save();
  context.beginPath();
  context.rect(x, top, width, height - top);
  context.clip();
  for (let at = Math.floor(x / 6) * 6 - height; at < x + width; at += 6) {
    context.beginPath();
    context.moveTo(at, height);
    context.lineTo(at + height, top);
    context.stroke();
  }
  context.restore();
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
    const looks = report.strip || "-";
    const step = second / looks.length;
    for (let at = 0; at < looks.length; ) {
      let end = at + 1;
      while (end < looks.length && looks[end] === looks[at]) end += 1;
      block(context, looks[at], left + at * step, (end - at) * step + 0.5, height);
      at = end;
    }
    context.fillStyle = colour("--mark");
    if (report.rescues > 0) {
      // A rescue: a triangle at the top.
      const middle = left + second / 2;
      context.beginPath();
      context.moveTo(middle - height / 6, 0);
      context.lineTo(middle + height / 6, 0);
      context.lineTo(middle, height / 3);
      context.fill();
    }
    if (report.handovers > 0) {
      // Leadership came from another thread: a tick at the bottom.
      context.fillRect(left + second / 2 - height / 20, height * 0.8, Math.max(2, height / 10), height * 0.2);
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
  const shares = {};
  for (const letter of report.strip) {
    const name = (STATES[letter] || STATES["-"])[0];
    shares[name] = (shares[name] || 0) + 1;
  }
  const parts = Object.entries(shares)
    .sort((a, b) => b[1] - a[1])
    .map(([name, looks]) => `${name} ${Math.round((100 * looks) / report.strip.length)} %`);
  const runs = report.running ? `, ran ${report.running}` : "";
  const ago = reports.length - 1 - row.at;
  byId("detail").textContent =
    `Thread ${row.number}, ${ago} s ago: ${parts.join(", ")}${runs}; led ${report.terms} times, ` +
    `${report.handovers} of them handed over by another thread, ${report.rescues} rescues.`;
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
  row = { number, element, at: null, canvas: make("canvas"), now: make("span", "", "now") };
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
  byId("threads").append(element);
  return row;
}

function showThreads(event) {
  for (const thread of event.threads || []) {
    const row = rowOf(thread.thread);
    const reports = history.get(thread.thread);
    reports.push(thread);
    if (reports.length > SECONDS) reports.shift();
    row.element.dataset.state = thread.state;
    const runs = thread.running ? `: ${thread.running}` : "";
    const long = thread.state === "blocked" ? ` for ${time(thread.seconds)}` : "";
    row.now.textContent = `${thread.state}${long}${runs}`;
    row.now.title = row.now.textContent;
    row.element.dataset.rescues = String(Number(row.element.dataset.rescues || 0) + thread.rescues);
    row.canvas.setAttribute("aria-label", `thread ${thread.thread}: ${row.now.textContent}`);
    strip(row);
  }
}

function fill(id, items, none, each) {
  const list = byId(id);
  list.replaceChildren(...(items.length ? items.map(each) : [make("li", none)]));
}

function showCards(cards) {
  const shown = Object.entries(CARDS).filter(([name]) => cards[name]);
  byId("cards").replaceChildren(
    ...shown.map(([name, title]) => {
      const card = make("div", undefined, "card");
      card.id = `card-${name}`;
      card.append(make("span", title), make("b", count(cards[name].rate)));
      if (cards[name].p50 !== null || cards[name].p99 !== null) {
        card.append(make("span", `p50 ${time(cards[name].p50)} · p99 ${time(cards[name].p99)}`));
      }
      return card;
    }),
  );
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
  item.append(make("span", `${kind} `, "kind"), make("b", rule.pattern));
  if (stored) item.append(make("span", ` by ${rule.stream}`, "kind"));
  item.append(` ${told.map(([figure, name]) => `${count(figure)} ${name}`).join(", ")}`);
  item.dataset.name = rule.pattern;
  return item;
}

function bridgeOf(bridge) {
  const box = make("div", undefined, "bridge");
  box.dataset.name = bridge.name;
  box.dataset.state = bridge.connected ? "connected" : "away";
  const state = bridge.connected ? `connected to ${bridge.server}` : "not connected";
  box.append(make("b", bridge.name), make("span", ` ${state}`, "state"));
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
  box.append(make("b", history.pattern), make("span", ` ${state}`, "state"));
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
  byId("pool").textContent = event.pool;
  const health = byId("health");
  const well = event.health.live && event.health.ready;
  health.className = well && !event.health.reasons.length ? "well" : "ill";
  const word = well ? (event.health.reasons.length ? "degraded" : "ready") : "not ready";
  setState(word);
  byId("reasons").textContent = event.health.reasons.join(" · ");
  showThreads(event);
  const cards = { ...event.figures.cards };
  showCards(cards);
  const process = event.figures.process;
  const card = make("div", undefined, "card");
  const memory = process.memory === null ? "–" : `${(process.memory / 1048576).toFixed(1)} MiB`;
  card.append(make("span", "process"), make("b", `${(process.cpu * 100).toFixed(0)} % CPU`));
  card.append(make("span", `${memory} · ${count(process.descriptors)} descriptors`));
  byId("cards").append(card);
  showAll("bridges", event.bridges || [], bridgeOf);
  showAll("histories", event.histories || [], historyOf);
  fill("blocked", event.blocked, "nothing", (it) => {
    const item = make("li", `thread ${it.thread}: ${it.name || "a handler"} for ${time(it.seconds)}`);
    item.dataset.name = it.name;
    return item;
  });
  fill("waiting", event.figures.waiting, "nothing", (it) => {
    const item = make("li", undefined);
    item.append(make("span", `${it.kind} `, "kind"), make("b", it.name), ` ${count(it.count)}`);
    item.dataset.name = it.name;
    return item;
  });
  fill("errors", event.errors.errors, "none", (it) => {
    const item = make("li");
    const when = make("time", (it.time || "").slice(11, 19));
    item.append(when, ` ${it.level} ${it.event}: ${it.message}`);
    const fields = Object.entries(it.fields || {}).map(([name, value]) => `${name}=${value}`);
    if (fields.length) item.append(` (${fields.join(", ")})`);
    return item;
  });
}

function legend() {
  for (const letter of LEGEND) {
    const item = make("li");
    const canvas = make("canvas");
    item.append(canvas, STATES[letter][0]);
    byId("legend").append(item);
    const context = fit(canvas);
    block(context, letter, 0, canvas.width, canvas.height);
  }
  byId("legend").append(make("li", "▾ rescue"), make("li", "▪ leadership handed over"));
}

// Only what changes is announced, and reasons change each second.
function setState(text) {
  if (byId("health").textContent !== text) byId("health").textContent = text;
}

function state(text) {
  byId("health").className = "ill";
  byId("reasons").textContent = "";
  setState(text);
}

// EventSource cannot send a token.
async function watch() {
  const token = sessionStorage.getItem("paceline-token");
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch("events", { headers, cache: "no-store" });
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
});
// Links cannot send a token: what they lead to is fetched, and shown or saved.
document.querySelector("nav").addEventListener("click", async (event) => {
  const token = sessionStorage.getItem("paceline-token");
  const link = event.target.closest("a");
  if (!link || !token) return;
  event.preventDefault();
  const answer = await fetch(link.href, { headers: { Authorization: `Bearer ${token}` } });
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
window.addEventListener("resize", () => rows.forEach(strip));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colours.clear();
  rows.forEach(strip);
});
legend();
watchOn();
