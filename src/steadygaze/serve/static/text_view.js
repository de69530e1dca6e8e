// The text view: explain a text, change its words, and see how far predictions and explanations shift.

import { announce, call, characters, current, element, guarded, input, make, modelNamed, rememberInAddress, request, save, say, state, targetOf, warnings } from "./page.js";
import { saveHtml, savePng } from "./export.js";
import { addCertificate, drawCard, summary } from "./words.js";

const PAUSE = 250; // milliseconds without a change before certificates are computed

let updateView = () => {};
export const onChange = (update) => { updateView = update; };

// ---- choice of models and explainers

const isChosen = (model, explainer) =>
  state.chosen.some((choice) => choice.model === model && choice.explainer === explainer);

export function drawChoices() {
  element("choices").replaceChildren(...state.models.map((model) => {
    const boxes = model.explainers.map((explainer) => {
      const box = make("input", { type: "checkbox" });
      box.checked = isChosen(model.name, explainer);
      box.addEventListener("change", () => {
        state.chosen = state.chosen.filter((choice) => choice.model !== model.name || choice.explainer !== explainer);
        if (box.checked) state.chosen.push({ model: model.name, explainer });
        updateView();
      });
      return make("label", {}, box, explainer);
    });
    return make("fieldset", {}, make("legend", { textContent: `${model.name} (${model.kind})` }), ...warnings(model.health), ...boxes);
  }));
  const needsQuestion = state.models.some((model) => model.pair) || current().question !== "";
  element("question-row").hidden &&= !needsQuestion;
  element("add-question").hidden = !element("question-row").hidden || state.models.every((model) => model.pair === false);
}

// ---- explanations

let requested = 0;
let shown = null; // the version that the cards explain

export async function updateText() {
  rememberInAddress();
  drawHistory();
  const version = current();
  const hasText = version.text.trim() !== "";
  const number = ++requested;
  if (!hasText || !state.chosen.length) {
    element("cards").inert = false;
    element("cards").replaceChildren();
    element("exports").hidden = true;
    say(hasText ? "Choose a model and an explainer." : "Type a text and press Explain.");
    return;
  }
  say("Explaining …");
  element("cards").inert = true; // its words belong to the text before
  try {
    const results = await Promise.all(state.chosen.map(({ model, explainer }) => {
      const facts = modelNamed(model);
      return call("/v1/shift", {
        model, explainer, ...targetOf(facts), before: input(facts, state.versions[0]), after: input(facts, version),
      });
    }));
    if (number !== requested) return; // a later change has overtaken this one
    state.results = results;
    shown = version;
    element("cards").replaceChildren(...results.map((result) => drawCard(result, openMenu)));
    element("exports").hidden = false;
    say("Ready.");
    announce(state.versions.length > 1 ? results.map(summary).join(" ") : "");
    element("cards").inert = false;
    returnFocus();
    setTimeout(() => certify(number), PAUSE);
  } catch (error) {
    if (number === requested) say(error.message, true);
  } finally {
    if (number === requested) element("cards").inert = false;
  }
}

async function certify(number) {
  const version = current();
  for (const model of new Set(state.chosen.map((choice) => choice.model))) {
    if (number !== requested) return;
    try {
      const certificate = await call("/v1/certify", { model, text: input(modelNamed(model), version) });
      if (number === requested) addCertificate(certificate, useRewrite);
    } catch (error) {
      if (number === requested) say(error.message, true);
    }
  }
}

// ---- changes of words

let selected = null; // { card, field, start, end, word }
let changed = null; // where the focus returns to

async function openMenu(button, field, start, end) {
  if (shown !== current()) {
    say("These explanations belong to an earlier text. Press Explain.", true);
    return;
  }
  const word = characters(current()[field]).slice(start, end).trim();
  selected = { card: [...element("cards").children].indexOf(button.closest("article")), field, start, end, word };
  element("word-title").textContent = selected.word;
  element("alternatives").replaceChildren();
  element("word-note").textContent = "Looking for synonyms …";
  element("other").value = "";
  element("word-menu").showModal();
  const model = state.chosen[0]?.model;
  const asked = selected;
  try {
    const place = field === "text" ? { text: current().text, start } : {}; // certificates are about words of the text
    const { synonyms } = await call("/v1/synonyms", { ...(model && { model }), word: selected.word.slice(0, 100), ...place });
    if (asked !== selected) return;
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
  const { field, start, end } = selected;
  const text = characters(current()[field]);
  const piece = text.slice(start, end);
  const after = piece.slice(piece.trimEnd().length) + text.slice(end);
  const before = text.slice(0, start);
  const rewrite = replacement ? before + replacement + after : (before + after.trimStart()).trim();
  element("word-menu").close();
  if (!rewrite.trim()) {
    say("The text would be empty: keep at least one word.", true);
    return;
  }
  state.versions.push({ ...current(), [field]: rewrite });
  changed = selected;
  fillInput();
  updateView();
}

function useRewrite(text) {
  state.versions.push({ ...current(), text });
  fillInput();
  element("text").focus();
  updateView();
}

/** Focus the changed word, or the one in the place of a deleted word. */
function returnFocus() {
  if (!changed) return;
  const { card, field, start } = changed;
  changed = null;
  const words = [...(element("cards").children[card]?.querySelectorAll(`.word[data-field="${field}"]`) ?? [])];
  const next = words.find((word) => Number(word.dataset.end) > start);
  (next ?? words.at(-1))?.focus();
}

function goBack(length) {
  state.versions.length = length;
  fillInput();
  if (length < 2 || element("history").contains(document.activeElement)) element("text").focus(); // the button is gone
  updateView();
}

/** What differs between two versions: "good → fine". */
function difference(one, other) {
  const field = one.text === other.text ? "question" : "text";
  const before = one[field].split(/\s+/), after = other[field].split(/\s+/);
  while (before.length && before[0] === after[0]) { before.shift(); after.shift(); }
  while (before.length && before.at(-1) === after.at(-1)) { before.pop(); after.pop(); }
  return `${before.join(" ")} → ${after.join(" ") || "deleted"}${field === "question" ? " (question)" : ""}`;
}

/** The undo list: every text but the last is a button that returns to it. */
export function drawHistory() {
  const { versions } = state;
  const items = versions.map((version, i) => {
    const shown = i ? difference(versions[i - 1], version) : version.text;
    if (i === versions.length - 1) return make("li", {}, make("span", { textContent: shown }));
    const button = make("button", { type: "button", className: "link", textContent: shown, title: version.text });
    button.setAttribute("aria-label", `Go back to: ${shown}`);
    button.addEventListener("click", () => goBack(i + 1));
    return make("li", {}, button);
  });
  element("history").replaceChildren(...(items.length > 1 ? items : []));
  element("undo").disabled = element("reset").disabled = versions.length < 2;
}

// ---- new texts

export function fillInput() {
  element("text").value = current().text;
  element("question").value = current().question;
}

export function showText(text, question = null) {
  state.versions = [{ text, question: question ?? current().question }];
  fillInput();
}

function newText() {
  state.versions = [{ text: element("text").value, question: element("question").value }];
  updateView();
}

async function pickText() {
  const offset = Math.floor(Math.random() * state.data.texts);
  const { texts: [row] } = await (await request(`/v1/data?limit=1&offset=${offset}`)).json();
  showText(row.text, row.question);
  await updateView();
  if (row.label !== null) say(`Label of the data: ${row.label}.`);
}

export function startTextView() {
  element("explain").addEventListener("click", newText);
  element("pick").hidden = !state.data;
  element("pick").addEventListener("click", guarded(pickText));
  element("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) newText();
  });
  element("add-question").addEventListener("click", () => {
    element("question-row").hidden = false;
    element("add-question").hidden = true;
    element("question").focus();
  });
  element("question").addEventListener("keydown", (event) => { if (event.key === "Enter") newText(); });
  element("undo").addEventListener("click", () => goBack(state.versions.length - 1));
  element("reset").addEventListener("click", () => goBack(1));
  element("link").addEventListener("click", guarded(async () => {
    if (!navigator.clipboard) { // only pages of this machine, or with TLS, have one
      say("This browser does not allow copying here. The address of the page is the link.");
      return;
    }
    await navigator.clipboard.writeText(location.href);
    say("The link to this state is copied.");
  }));
  element("save-json").addEventListener("click", () => save("explanations.json", JSON.stringify(state.results, null, 1), "application/json"));
  element("save-html").addEventListener("click", guarded(saveHtml));
  element("save-png").addEventListener("click", guarded(savePng));
  element("delete-word").addEventListener("click", () => replaceWord(""));
  element("close-menu").addEventListener("click", () => element("word-menu").close());
  element("other-form").addEventListener("submit", () => {
    const word = element("other").value.trim();
    if (word) replaceWord(word);
  });
}
