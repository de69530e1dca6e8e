// The text view: explain a text, change its words, and see how far predictions and explanations shift.

import { call, current, element, guarded, input, make, modelNamed, rememberInAddress, request, save, say, state, targetOf } from "./page.js";
import { saveHtml, savePng } from "./export.js";
import { addCertificate, drawCard } from "./words.js";

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
    return make("fieldset", {}, make("legend", { textContent: `${model.name} (${model.kind})` }), ...boxes);
  }));
  element("question-row").hidden = !state.models.some((model) => model.pair);
}

// ---- explanations

let requested = 0;

export async function updateText() {
  rememberInAddress();
  drawHistory();
  const text = current();
  const number = ++requested;
  if (!text.trim() || !state.chosen.length) {
    element("cards").inert = false;
    element("cards").replaceChildren();
    element("exports").hidden = true;
    say(text.trim() ? "Choose a model and an explainer." : "Type a text and press Explain.");
    return;
  }
  say("Explaining …");
  element("cards").inert = true; // its words belong to the text before
  try {
    const results = await Promise.all(state.chosen.map(({ model, explainer }) => {
      const facts = modelNamed(model);
      return call("/v1/shift", {
        model, explainer, ...targetOf(facts), before: input(facts, state.texts[0]), after: input(facts, text),
      });
    }));
    if (number !== requested) return; // a later change has overtaken this one
    state.results = results;
    element("cards").replaceChildren(...results.map((result) => drawCard(result, openMenu)));
    element("exports").hidden = false;
    say("Ready.");
    setTimeout(() => certify(number), PAUSE);
  } catch (error) {
    if (number === requested) say(error.message, true);
  } finally {
    if (number === requested) element("cards").inert = false;
  }
}

async function certify(number) {
  const text = current();
  for (const model of new Set(state.chosen.map((choice) => choice.model))) {
    if (number !== requested) return;
    try {
      const certificate = await call("/v1/certify", { model, text: input(modelNamed(model), text) });
      if (number === requested) addCertificate(certificate);
    } catch (error) {
      if (number === requested) say(error.message, true);
    }
  }
}

// ---- changes of words

let selected = null;

async function openMenu(text, start, end) {
  if (text !== current()) {
    say("These explanations belong to an earlier text. Press Explain.", true);
    return;
  }
  selected = { text, start, end, word: text.slice(start, end).trim() };
  element("word-title").textContent = selected.word;
  element("alternatives").replaceChildren();
  element("word-note").textContent = "Looking for synonyms …";
  element("other").value = "";
  element("word-menu").showModal();
  const model = state.chosen[0]?.model;
  const asked = selected;
  try {
    const { synonyms } = await call("/v1/synonyms", { ...(model && { model }), word: selected.word.slice(0, 100) });
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
  updateView();
}

export function drawHistory() {
  const items = state.texts.map((text) => make("li", { textContent: text }));
  element("history").replaceChildren(...(items.length > 1 ? items : []));
  element("undo").disabled = element("reset").disabled = state.texts.length < 2;
}

// ---- new texts

export function showText(text, question = null) {
  state.texts = [text];
  if (question !== null) state.question = question;
  element("text").value = text;
  element("question").value = state.question;
}

function newText() {
  state.texts = [element("text").value];
  state.question = element("question").value;
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
  const goBack = (length) => { state.texts.length = length; element("text").value = current(); updateView(); };
  element("undo").addEventListener("click", () => goBack(state.texts.length - 1));
  element("reset").addEventListener("click", () => goBack(1));
  element("link").addEventListener("click", guarded(async () => {
    await navigator.clipboard?.writeText(location.href);
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
