// One explanation as a card: highlighted words, probabilities, shift and certificate.

import { element, make, number, percent, signed, state } from "./page.js";

export function drawCard(result, openMenu) {
  const { after, model } = result;
  const card = make("article", {}, make("h3", { textContent: `${model}: ${after.explainer}` }));
  card.dataset.model = model;
  card.append(drawWords(result, openMenu));
  if (after.question !== null) card.append(drawQuestion(after));
  card.append(drawProbabilities(result));
  if (state.texts.length > 1) card.append(drawShift(result));
  return card;
}

const background = (weight, largest) =>
  `rgba(var(${weight < 0 ? "--against" : "--for"}), ${((0.55 * Math.abs(weight)) / largest).toFixed(3)})`;

function drawWords({ before, after, shift }, openMenu) {
  const { text, tokens, spans, weights, read_to: readTo } = after;
  const largest = Math.max(...weights.map(Math.abs), ...(after.question_weights ?? []).map(Math.abs), 1e-9);
  const differs = ([i, j]) => j !== null && (i === null || before.tokens[i] !== tokens[j]);
  const changed = new Set(shift.aligned.filter(differs).map(([, j]) => j));
  const box = make("p", { className: "words" });
  let place = 0;
  spans.forEach(([start, end], i) => {
    box.append(text.slice(place, start));
    const word = make("button", { className: "word", textContent: text.slice(start, end), type: "button" });
    word.classList.toggle("changed", changed.has(i));
    word.dataset.token = tokens[i].trim().toLowerCase();
    word.title = `weight ${weights[i].toFixed(3)}`;
    word.setAttribute("aria-label", `${tokens[i]}, weight ${weights[i].toFixed(3)}: change this word`);
    word.style.backgroundColor = background(weights[i], largest);
    word.addEventListener("click", () => openMenu(text, start, end));
    box.append(word);
    place = end;
  });
  const rest = text.slice(place);
  box.append(readTo === null ? rest : make("span", { className: "unread", textContent: rest, title: "not read by the model" }));
  return box;
}

function drawQuestion(after) {
  const { question, question_spans: spans, question_weights: weights } = after;
  const box = make("p", { className: "words" }, make("em", { textContent: "Question: " }));
  if (!weights) {
    box.append(question);
    return box;
  }
  const largest = Math.max(...after.weights.map(Math.abs), ...weights.map(Math.abs), 1e-9);
  let place = 0;
  spans.forEach(([start, end], i) => {
    const word = make("span", { textContent: question.slice(start, end), title: `weight ${weights[i].toFixed(3)}` });
    word.style.backgroundColor = background(weights[i], largest);
    box.append(question.slice(place, start), word);
    place = end;
  });
  box.append(question.slice(place));
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
      make("td", { className: "number", textContent: `${percent(probability)}${change}` }));
  });
  if (after.value !== null) {
    rows.push(make("tr", {}, make("th", { scope: "row", textContent: String(after.label) }),
      make("td", { className: "number", textContent: after.value.toPrecision(4) })));
  }
  return make("table", {}, make("tbody", {}, ...rows));
}

export function facts(caption, rows) {
  return make("table", {}, make("caption", { textContent: caption, className: "hint" }), make("tbody", {},
    ...rows.map(([name, value, kind = ""]) => make("tr", {}, make("th", { scope: "row", textContent: name }),
      make("td", { className: `value ${kind}`, textContent: value })))));
}

export const shiftRows = (shift) => [
  ["label", shift.label_flip ? "changed" : "unchanged", shift.label_flip ? "flip" : ""],
  ["shift of the explanation (Jensen-Shannon, 0 to 0.693)", number(shift.jensen_shannon)],
  [`shared top-${shift.top_k} words`, shift.top_k_overlap === null ? "–" : `${Math.round(100 * shift.top_k_overlap)} %`],
];

const drawShift = ({ shift }) => facts("Compared with the first text", shiftRows(shift));

// ---- certificates

const canChange = (certified) => (certified ? "cannot change" : "may change");

function certificateRows({ attention, words }) {
  const rows = [];
  if (typeof attention === "string") rows.push(["attention weights", `not available: ${attention}`]);
  else {
    rows.push(["certified radius of the label (change of an attention weight, sum kept)",
      attention.radius === null ? "none: the decoder is not linear" : number(attention.radius)]);
    rows.push([`top ${attention.k} words, for changes up to ${attention.R}`, canChange(attention.top_k_holds)]);
  }
  if (typeof words === "string") rows.push(["substituted words", `not available: ${words}`]);
  else {
    const how = { exact: "all rewrites", sampling: "smoothed model", none: "too many rewrites" }[words.method];
    rows.push([`label, for all substitutions of the table (${how})`, canChange(words.certified), words.certified ? "" : "flip"]);
    if (words.counterexample !== null) rows.push(["a rewrite with another label", words.counterexample]);
    rows.push(["words read the same as all their synonyms", `${words.covered_positions} of ${words.positions} words with synonyms`]);
  }
  return rows;
}

/** Add a certificate to the cards of a model, and mark its certified words. */
export function addCertificate(certificate) {
  const covered = new Set(certificate.covered_words);
  for (const card of element("cards").children) {
    if (card.dataset.model !== certificate.model) continue;
    card.querySelector(".certificate")?.remove();
    const table = facts("Certificate", certificateRows(certificate));
    table.classList.add("certificate");
    card.append(table);
    for (const word of card.querySelectorAll(".word")) {
      if (!covered.has(word.dataset.token)) continue;
      word.classList.add("certified");
      word.title += "; read the same as all its synonyms";
    }
  }
}
