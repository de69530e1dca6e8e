// One explanation as a card: highlighted words, probabilities, shift and certificate.

import { characters, element, make, number, percent, signed, state, warnings } from "./page.js";

export function drawCard(result, openMenu) {
  const { after, model } = result;
  const card = make("article", {}, make("h3", { textContent: `${model}: ${after.explainer}` }));
  card.dataset.model = model;
  card.append(...warnings(after.health));
  card.append(drawWords(result, openMenu));
  if (after.rationale !== null) card.append(make("p", { className: "hint", textContent: selection(after) }));
  if (after.question !== null) card.append(drawQuestion(result, openMenu));
  if (after.shading.remark) card.append(make("p", { className: "remark", textContent: after.shading.remark }));
  card.append(make("p", { className: "hint scale", textContent: after.shading.scale }));
  card.append(drawProbabilities(result));
  if (state.versions.length > 1) card.append(drawShift(result));
  return card;
}

/** How much a rationalizer selects. */
function selection({ sentences, weights }) {
  if (sentences !== null) return `Selected: 1 of ${sentences} sentences.`;
  return `Selected: ${weights.filter((weight) => weight !== 0).length} of ${weights.length} words.`;
}

/** A card in one sentence, for screen readers. */
export function summary({ model, after, shift }) {
  const label = `label ${shift.label_flip ? "changed to" : "unchanged:"} ${after.label}`;
  return `${model}, ${after.explainer}: ${label}, Jensen-Shannon divergence ${shift.jensen_shannon === null ? "not defined" : number(shift.jensen_shannon)}.`;
}

/** The color of a weight; `part` is the strength that the server computed, 0 for gray. */
export const background = (weight, part) =>
  part ? `rgba(var(${weight < 0 ? "--against" : "--for"}), ${(0.55 * part).toFixed(3)})`
    : weight ? "rgba(var(--gray), 0.14)" : "transparent";

/** A word as a button that opens the menu. */
function drawWord(shown, token, [field, start, end], weight, openMenu) {
  const word = make("button", { className: "word", textContent: shown, type: "button" });
  Object.assign(word.dataset, { field, end, token: token.trim().toLowerCase() });
  const note = weight === null ? "" : `weight ${weight.toFixed(3)}`;
  word.title = note;
  word.setAttribute("aria-label", `${token}${field === "question" ? " (question)" : ""}${note && ", "}${note}: change this word`);
  word.addEventListener("click", () => openMenu(word, field, start, end));
  return word;
}

function drawWords({ before, after, shift }, openMenu) {
  const { tokens, spans, weights, read_to: readTo } = after;
  const text = characters(after.text);
  const differs = ([i, j]) => j !== null && (i === null || before.tokens[i] !== tokens[j]);
  const changed = new Set(shift.aligned.filter(differs).map(([, j]) => j));
  const box = make("p", { className: "words" });
  let place = 0;
  spans.forEach(([start, end], i) => {
    box.append(text.slice(place, start));
    const word = drawWord(text.slice(start, end), tokens[i], ["text", start, end], weights[i], openMenu);
    word.classList.toggle("changed", changed.has(i));
    word.style.backgroundColor = background(weights[i], after.shading.text[i]);
    box.append(word);
    place = end;
  });
  const rest = text.slice(place);
  box.append(readTo === null ? rest : make("span", { className: "unread", textContent: rest, title: "not read by the model" }));
  return box;
}

/** First character and end of each word. */
function wordSpans(text) {
  let place = 0, end = 0;
  return [...text.matchAll(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu)].map((match) => {
    const start = end + characters(text.slice(place, match.index)).length;
    place = match.index + match[0].length;
    end = start + characters(match[0]).length;
    return [start, end];
  });
}

/** The words of the question; attention has no weights for them. */
function drawQuestion({ before, after }, openMenu) {
  const weights = after.question_weights;
  const spans = after.question_spans ?? wordSpans(after.question);
  const question = characters(after.question), first = characters(before.question);
  const firstSpans = before.question_spans ?? wordSpans(before.question);
  const box = make("p", { className: "words" }, make("em", { textContent: "Question: " }));
  let place = 0;
  spans.forEach(([start, end], i) => {
    const shown = question.slice(start, end);
    const word = drawWord(shown, shown, ["question", start, end], weights ? weights[i] : null, openMenu);
    word.classList.toggle("changed", firstSpans.length === spans.length && first.slice(...firstSpans[i]) !== shown);
    if (weights) word.style.backgroundColor = background(weights[i], after.shading.question[i]);
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
    const change = state.versions.length > 1 && was !== undefined ? ` (${signed(probability - was)} points)` : "";
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
      make("td", { className: `value ${kind}${value.length > 24 ? " long" : ""}`, textContent: value })))));
}

export const shiftRows = (shift) => [
  ["label", shift.label_flip ? "changed" : "unchanged", shift.label_flip ? "flip" : ""],
  ["shift of the explanation (Jensen-Shannon, 0 to 0.693)", number(shift.jensen_shannon)],
  [`shared top-${shift.top_k} words`, shift.top_k_overlap === null ? "–" : `${Math.round(100 * shift.top_k_overlap)} %`],
];

const drawShift = ({ shift }) => facts("Compared with the first text", shiftRows(shift));

// ---- certificates

/** A certificate that holds for any model. */
const vacuous = (reason) => [`vacuous: ${reason}`, "vacuous"];
const answerOf = (certified) => (certified ? "certified" : "not certified");

/** Whether rewrites change the label that the card shows. */
function labelAnswer({ model_certified: certified, rewrites, samples, vacuous: isVacuous }) {
  if (isVacuous) return vacuous("no word has a synonym in the table");
  if (certified === false) return ["changed by a rewrite", "flip"];
  const count = `${rewrites.toLocaleString("en")} rewrites`;
  if (certified) return [`certified: the same for all ${count}`];
  return [rewrites > samples ? `not certified: of ${count}, at most ${samples.toLocaleString("en")} are evaluated` : "not certified: too close to another label"];
}

/** The label of another model, which takes the most frequent label of random rewrites. */
function smoothedRow({ label, model_label: shown, certified, confidence, samples }) {
  const differs = String(label) !== String(shown);
  const answer = certified ? `certified (${Math.round(100 * confidence)}\u00a0%)` : "not certified";
  return [`smoothed model: its label is the most frequent one of ${samples.toLocaleString("en")} random rewrites`,
    `${label}${differs ? `, not ${shown} as shown above` : ""}: ${answer}`, differs ? "flip" : ""];
}

function certificateRows({ attention, words }) {
  const rows = [];
  if (typeof attention === "string") rows.push(["attention weights", `not available: ${attention}`]);
  else {
    rows.push(["label: certified radius (change of an attention weight, sum kept)",
      ...(attention.radius === null ? ["none: the decoder is not linear"]
        : String(attention.radius) === "inf" ? vacuous("no change of the weights changes the prediction") : [number(attention.radius)])]);
    rows.push([`top ${attention.k} words, for changes of the weights up to ${attention.R}`,
      ...(attention.vacuous_top_k ? vacuous(`the text has at most ${attention.k} words`) : [answerOf(attention.top_k_holds)])]);
  }
  if (typeof words === "string") rows.push(["substituted words", `not available: ${words}`]);
  else {
    const isSampled = words.method === "sampling";
    rows.push([`label ${words.model_label}, for all substitutions of the table`, ...labelAnswer(words)]);
    if (isSampled) rows.push(smoothedRow(words));
    if (words.top_k_certified !== null) {
      const reason = words.vacuous ? "no word has a synonym in the table" : `the text has at most ${words.k} words`;
      const level = isSampled && words.top_k_certified ? ` (${Math.round(100 * words.confidence)}\u00a0%)` : "";
      rows.push([`top ${words.k} words${isSampled ? " of the smoothed model" : ""}, for these substitutions`,
        ...(words.vacuous_top_k ? vacuous(reason) : [answerOf(words.top_k_certified) + level])]);
    }
    rows.push(["words read the same as all their synonyms", `${words.covered_positions} of ${words.positions} words with synonyms`]);
  }
  return rows;
}

/** What the certificate is about. */
function scope({ attention, words }) {
  const claims = [];
  if (typeof attention !== "string") claims.push("changes of the attention weights themselves");
  if (typeof words !== "string") claims.push("rewrites that replace any words of the text by their synonyms in the table");
  return claims.length ? `Certificate of the text as shown, for ${claims.join(", and for ")}. Other words, inserted or deleted words and questions are not covered.` : "Certificate";
}

function drawRewrite(text, useRewrite) {
  const button = make("button", { type: "button", className: "quiet", textContent: "Try this rewrite" });
  button.addEventListener("click", () => useRewrite(text));
  return make("div", { className: "rewrite" }, make("p", { className: "hint", textContent: "A rewrite with another label:" }),
    make("p", { textContent: text }), button);
}

/** Add a certificate to the cards of a model, and mark its certified words. */
export function addCertificate(certificate, useRewrite) {
  const covered = new Set(certificate.covered_words);
  for (const card of element("cards").children) {
    if (card.dataset.model !== certificate.model) continue;
    for (const old of card.querySelectorAll(".certificate, .rewrite")) old.remove();
    const table = facts(scope(certificate), certificateRows(certificate));
    table.classList.add("certificate");
    card.append(table);
    if (certificate.words.counterexample) card.append(drawRewrite(certificate.words.counterexample, useRewrite));
    for (const word of card.querySelectorAll(".word")) {
      if (!covered.has(word.dataset.token)) continue;
      word.classList.add("certified");
      word.title += "; read the same as all its synonyms";
    }
  }
}
