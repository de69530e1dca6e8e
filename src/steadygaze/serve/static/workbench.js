// The workbench: explain a text with several models, change its words and see how far predictions and explanations shift.
// Texts of users reach the page by textContent only.

const element = (id) => document.getElementById(id);
const make = (tag, properties = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};

const state = { models: [], texts: [""], question: "", chosen: [], results: [] };

async function call(path, body) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) element("token-form").hidden = false;
  if (!response.ok) throw new Error(answer.error?.message ?? `The server answers ${response.status}.`);
  return answer;
}

function say(message, isError = false) {
  element("status").textContent = message;
  element("status").classList.toggle("error", isError);
}

const current = () => state.texts[state.texts.length - 1];
const modelNamed = (name) => state.models.find((model) => model.name === name);
const input = (model, text) => (model.pair ? [text, state.question] : text);

// ---- choice of models and explainers

function drawChoices() {
  element("choices").replaceChildren(
    ...state.models.map((model) => {
      const boxes = model.explainers.map((explainer) => {
        const box = make("input", { type: "checkbox" });
        box.checked = isChosen(model.name, explainer);
        box.addEventListener("change", () => {
          state.chosen = state.chosen.filter((choice) => choice.model !== model.name || choice.explainer !== explainer);
          if (box.checked) state.chosen.push({ model: model.name, explainer });
          update();
        });
        return make("label", {}, box, explainer);
      });
      return make("fieldset", {}, make("legend", { textContent: `${model.name} (${model.kind})` }), ...boxes);
    }),
  );
  element("question-row").hidden = !state.models.some((model) => model.pair);
}

const isChosen = (model, explainer) =>
  state.chosen.some((choice) => choice.model === model && choice.explainer === explainer);

// ---- explanations

let requested = 0;

async function update() {
  rememberInAddress();
  drawHistory();
  const text = current();
  if (!text.trim()) {
    element("cards").replaceChildren();
    say("Type a text and press Explain.");
    return;
  }
  const number = ++requested;
  say("Explaining …");
  try {
    const results = await Promise.all(
      state.chosen.map(async ({ model, explainer }) => {
        const facts = modelNamed(model);
        const target = facts.task === "classification" ? undefined : facts.classes[0];
        return call("/v1/shift", {
          model, explainer, ...(target && { target }),
          before: input(facts, state.texts[0]), after: input(facts, text),
        });
      }),
    );
    if (number !== requested) return; // a later change has overtaken this one
    state.results = results;
    element("cards").replaceChildren(...results.map(drawCard));
    element("save-json").disabled = false;
    say(results.length ? "Ready." : "Choose a model and an explainer.");
  } catch (error) {
    if (number === requested) say(error.message, true);
  }
}

function drawCard(result) {
  const { after, model } = result;
  const card = make("article", {}, make("h3", { textContent: `${model}: ${after.explainer}` }));
  card.append(drawWords(result));
  card.append(drawProbabilities(result));
  if (state.texts.length > 1) card.append(drawShift(result));
  return card;
}

function drawWords({ before, after, shift }) {
  const { text, tokens, spans, weights, read_to: readTo } = after;
  const largest = Math.max(...weights.map(Math.abs), 1e-9);
  const differs = ([i, j]) => j !== null && (i === null || before.tokens[i] !== tokens[j]);
  const changed = new Set(shift.aligned.filter(differs).map(([, j]) => j));
  const box = make("p", { className: "words" });
  let place = 0;
  spans.forEach(([start, end], i) => {
    box.append(text.slice(place, start));
    const strength = Math.abs(weights[i]) / largest;
    const word = make("button", { className: "word", textContent: text.slice(start, end), type: "button" });
    word.classList.toggle("changed", changed.has(i));
    word.title = `weight ${weights[i].toFixed(3)}`;
    word.setAttribute("aria-label", `${tokens[i]}, weight ${weights[i].toFixed(3)}: change this word`);
    word.style.backgroundColor = `rgba(var(${weights[i] < 0 ? "--against" : "--for"}), ${(0.55 * strength).toFixed(3)})`;
    word.addEventListener("click", () => openMenu(text, start, end));
    box.append(word);
    place = end;
  });
  const rest = text.slice(place);
  box.append(readTo === null ? rest : make("span", { className: "unread", textContent: rest, title: "not read by the model" }));
  return box;
}

function drawProbabilities({ before, after }) {
  const rows = Object.entries(after.probabilities).map(([label, probability]) => {
    const value = make("meter", { min: 0, max: 1, value: probability });
    value.setAttribute("aria-label", `probability of ${label}`);
    const name = make("th", { scope: "row", textContent: label, className: String(after.label) === label ? "label" : "" });
    const was = before.probabilities[label];
    const change = state.texts.length > 1 && was !== undefined ? ` (${signed(probability - was)})` : "";
    return make("tr", {}, name, make("td", {}, value),
      make("td", { className: "number", textContent: `${(100 * probability).toFixed(1)} %${change}` }));
  });
  if (after.value !== null) rows.push(make("tr", {}, make("th", { scope: "row", textContent: String(after.label) }),
    make("td", { className: "number", textContent: after.value.toPrecision(4) })));
  return make("table", {}, make("tbody", {}, ...rows));
}

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(1)}`;
const number = (value) => (value === null ? "–" : value.toFixed(3));

function drawShift({ shift }) {
  const rows = [
    ["label", shift.label_flip ? "changed" : "unchanged", shift.label_flip ? "flip" : ""],
    ["shift of the explanation (Jensen-Shannon, 0 to 0.693)", number(shift.jensen_shannon), ""],
    [`shared top-${shift.top_k} words`, shift.top_k_overlap === null ? "–" : `${Math.round(100 * shift.top_k_overlap)} %`, ""],
  ];
  return make("table", {}, make("caption", { textContent: "Compared with the first text", className: "hint" }), make("tbody", {},
    ...rows.map(([name, value, kind]) => make("tr", {}, make("th", { scope: "row", textContent: name }),
      make("td", { className: `number ${kind}`, textContent: value })))));
}

// ---- changes of words

let selected = null;

async function openMenu(text, start, end) {
  selected = { text, start, end, word: text.slice(start, end).trim() };
  element("word-title").textContent = selected.word;
  element("alternatives").replaceChildren();
  element("word-note").textContent = "Looking for synonyms …";
  element("other").value = "";
  element("word-menu").showModal();
  const model = state.chosen[0]?.model;
  try {
    const { synonyms } = await call("/v1/synonyms", { ...(model && { model }), word: selected.word });
    element("word-note").textContent = synonyms.length ? "Substitute a synonym:" : "The synonym table has no synonym of this word.";
    element("alternatives").replaceChildren(...synonyms.map((synonym) => {
      const button = make("button", { textContent: synonym, className: "quiet", type: "button" });
      button.addEventListener("click", () => replaceWord(synonym));
      return button;
    }));
  } catch (error) {
    element("word-note").textContent = error.message;
  }
}

function replaceWord(replacement) {
  const { text, start, end } = selected;
  const piece = text.slice(start, end);
  const space = piece.length - piece.trimEnd().length;
  const after = text.slice(end - space);
  const changed = replacement ? text.slice(0, start) + replacement + after : (text.slice(0, start) + after.trimStart()).trim();
  element("word-menu").close();
  if (!changed.trim()) {
    say("The text would be empty: keep at least one word.", true);
    return;
  }
  state.texts.push(changed);
  element("text").value = changed;
  update();
}

function drawHistory() {
  const items = state.texts.map((text) => make("li", { textContent: text }));
  element("history").replaceChildren(...(items.length > 1 ? items : []));
  element("undo").disabled = element("reset").disabled = state.texts.length < 2;
}

// ---- address, files

function rememberInAddress() {
  const kept = { texts: state.texts, question: state.question, chosen: state.chosen };
  history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify(kept))}`);
}

function readAddress() {
  try {
    const kept = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    if (Array.isArray(kept.texts) && kept.texts.length && kept.texts.every((text) => typeof text === "string")) state.texts = kept.texts;
    if (typeof kept.question === "string") state.question = kept.question;
    if (Array.isArray(kept.chosen)) state.chosen = kept.chosen.filter(({ model, explainer }) => modelNamed(model)?.explainers.includes(explainer));
  } catch {
    // an address without a state
  }
}

function save(name, content, type) {
  const link = make("a", { href: URL.createObjectURL(new Blob([content], { type })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

// ---- start

function newText() {
  state.texts = [element("text").value];
  state.question = element("question").value;
  update();
}

async function start() {
  try {
    state.models = (await call("/v1/models")).models;
  } catch (error) {
    say(error.message, true);
    return;
  }
  readAddress();
  if (!state.chosen.length) state.chosen = state.models.map(({ name, explainers }) => ({ model: name, explainer: explainers[0] }));
  element("text").value = current();
  element("question").value = state.question;
  drawChoices();
  update();
}

element("explain").addEventListener("click", newText);
element("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) newText();
});
element("undo").addEventListener("click", () => { state.texts.pop(); element("text").value = current(); update(); });
element("reset").addEventListener("click", () => { state.texts.length = 1; element("text").value = current(); update(); });
element("link").addEventListener("click", async () => {
  await navigator.clipboard?.writeText(location.href);
  say("The link to this state is copied.");
});
element("save-json").addEventListener("click", () => save("explanations.json", JSON.stringify(state.results, null, 1), "application/json"));
element("delete-word").addEventListener("click", () => replaceWord(""));
element("close-menu").addEventListener("click", () => element("word-menu").close());
element("other-form").addEventListener("submit", () => { const word = element("other").value.trim(); if (word) replaceWord(word); });
element("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", element("token").value);
  element("token-form").hidden = true;
  start();
});
start();
