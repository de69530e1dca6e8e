// The compare view: several models and explainers on the same text, word by word.

import { call, current, element, input, make, modelNamed, percent, readsPair, rememberInAddress, say, state, targetOf, warnings } from "./page.js";
import { drawHistory } from "./text_view.js";
import { background, shiftRows } from "./words.js";

const TOP = 5;
let requested = 0;

export async function updateCompare() {
  rememberInAddress();
  drawHistory();
  const number = ++requested;
  const text = current();
  element("comparison").replaceChildren();
  if (!text.text.trim()) return say("Type a text and press Explain.");
  if (state.chosen.length < 2) return say("Choose at least two models or explainers.");
  const pairs = new Set(state.chosen.map(({ model }) => readsPair(modelNamed(model), text)));
  if (pairs.size > 1) return say("Models of single texts and of pairs cannot be compared.", true);
  say("Comparing …");
  try {
    const choices = state.chosen.map(({ model, explainer }) => ({ model, explainer, ...targetOf(modelNamed(model)) }));
    const { results } = await call("/v1/compare", { text: input(modelNamed(choices[0].model), text), choices });
    if (number !== requested) return undefined;
    element("comparison").replaceChildren(...warnings(results.flatMap(({ explanation }) => explanation.health)), drawSummary(results), drawTable(results));
    say("Ready.");
  } catch (error) {
    if (number === requested) say(error.message, true);
  }
  return undefined;
}

const nameOf = ({ model, explanation }) => `${model}: ${explanation.explainer}`;
const cell = (textContent, className = "") => make("td", { textContent, className });
const heading = (textContent, i) => make("th", { scope: "col", textContent, className: i > 0 ? "number" : "" });

function wrap(label, table) {
  const box = make("div", { className: "scroll", tabIndex: 0 }, table);
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", label);
  return box;
}

function drawSummary(results) {
  const first = results[0].explanation;
  const rows = results.map((result, i) => {
    const { explanation, difference } = result;
    const probability = explanation.value === null ? percent(explanation.probabilities[explanation.label] ?? null) : explanation.value.toPrecision(4);
    const differs = String(explanation.label) !== String(first.label);
    const label = cell(`${explanation.label}${differs ? " (differs)" : ""}`, differs ? "flip" : "label");
    const shift = shiftRows(difference).slice(1).map(([, value]) => cell(i ? value : "–", "number"));
    label.classList.add("number");
    return make("tr", {}, make("th", { scope: "row", textContent: nameOf(result) }), label, cell(probability, "number"), ...shift);
  });
  const names = ["model: explainer", "label", "probability", "Jensen-Shannon to the first", `top-${TOP} overlap with the first`];
  return wrap("Summary", make("table", { className: "grid" }, make("caption", { textContent: "Summary", className: "hint" }),
    make("thead", {}, make("tr", {}, ...names.map(heading))), make("tbody", {}, ...rows)));
}

const topOf = ({ weights }) =>
  new Set(weights.map((weight, i) => [Math.abs(weight), i]).sort((a, b) => b[0] - a[0]).slice(0, TOP).filter(([weight]) => weight > 0).map(([, i]) => i));

/** One row for each word of the first model; words of other models by their alignment. */
function drawTable(results) {
  const tops = results.map(({ explanation }) => topOf(explanation));
  const first = results[0].explanation;
  const positions = results.map(({ difference }) => new Map(difference.aligned.filter(([i]) => i !== null)));
  const rows = first.tokens.map((token, i) => {
    const isTop = results.map((_, r) => { const j = positions[r].get(i); return j !== undefined && j !== null && tops[r].has(j); });
    const isDisputed = isTop.some(Boolean) && !isTop.every(Boolean);
    const cells = results.map(({ explanation }, r) => {
      const j = positions[r].get(i);
      if (j === undefined || j === null) return cell("–", "number");
      const weight = explanation.weights[j];
      const one = cell(`${weight.toFixed(3)}${isTop[r] ? " ★" : ""}`, `number${isDisputed && isTop[r] ? " disputed" : ""}`);
      one.style.backgroundColor = background(weight, explanation.shading.text[j]);
      return one;
    });
    return make("tr", { className: isDisputed ? "disputed-row" : "" }, make("th", { scope: "row", textContent: token }), ...cells);
  });
  return wrap("Weights of the words", make("table", { className: "grid" },
    make("caption", { textContent: `Weights of the words; ★ marks the top ${TOP} of each`, className: "hint" }),
    make("thead", {}, make("tr", {}, ...["word", ...results.map(nameOf)].map(heading))), make("tbody", {}, ...rows)));
}
