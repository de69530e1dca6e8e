// Shared by all views: the state, requests, messages and elements.  Texts of users reach the page by textContent only.

export const element = (id) => document.getElementById(id);

export function make(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/** The known-bad states of a model, each once. */
export const warnings = (health) =>
  [...new Set(health.map(({ message }) => message))].map((message) => make("p", { className: "health", textContent: `⚠ ${message}` }));
/** A model in a list of choices. */
export const choice = ({ name, health }) => [name, [name, ...health.map(({ message }) => `⚠ ${message}`)].join(" ")];

export const state = {
  models: [], data: null, view: "text", chosen: [], results: [], audit: {},
  versions: [{ text: "", question: "" }], // the first text and its rewrites
};
export const current = () => state.versions[state.versions.length - 1];
export const modelNamed = (name) => state.models.find((model) => model.name === name);
/** A model whose `pair` is null reads both; it gets a pair if there is a question. */
export const readsPair = (model, { question }) => model.pair ?? question.trim() !== "";
export const input = (model, version) => (readsPair(model, version) ? [version.text, version.question] : version.text);
export const targetOf = (model) => (model.task === "classification" ? {} : { target: model.classes[0] });

export class ServerError extends Error {}

export async function request(path, options = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new ServerError("The server does not answer. Is it still running?");
  }
  if (response.ok) return response;
  if (response.status === 401) element("token-form").hidden = false;
  const answer = await response.json().catch(() => ({}));
  const message = answer.error?.message ?? `the server answers ${response.status}`;
  throw new ServerError(`${message.charAt(0).toUpperCase()}${message.slice(1)}.`);
}

export async function call(path, body) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return (await request(path, options ?? {})).json();
}

/** Characters as the server counts them: a character outside the basic plane has length 2 in JavaScript. */
export const characters = (text) => {
  const all = Array.from(text);
  return { length: all.length, slice: (start, end) => all.slice(start, end).join("") };
};

export function say(message, isError = false) {
  element("status").textContent = message;
  element("status").classList.toggle("error", isError);
}

/** Tell screen readers what the page shows elsewhere. */
export function announce(message) {
  element("announcement").textContent = message;
}

/** Run a function; show its error. */
export const guarded = (work) => async (...values) => {
  try {
    return await work(...values);
  } catch (error) {
    say(error.message, true);
    if (!(error instanceof ServerError)) console.error(error);
    return undefined;
  }
};

export function fillSelect(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => make("option", { value, textContent: text })));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

export const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(100 * value).toFixed(1)}`;
export const number = (value) => (value === null || value === undefined ? "–" : String(value) === "inf" ? "∞" : value.toFixed(3));
export const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);

export function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// ---- address: the state of the page, so that it can be shared

export function rememberInAddress() {
  const { view, versions, chosen, audit } = state;
  try {
    history.replaceState(null, "", `#${encodeURIComponent(JSON.stringify({ view, versions, chosen, audit }))}`);
  } catch {
    // too long, or too many changes in a second: the address stays as it is
  }
}

export function readAddress() {
  let kept;
  try {
    kept = JSON.parse(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return; // an address without a state
  }
  if (kept === null || typeof kept !== "object") return;
  const isText = (value) => typeof value === "string";
  if (["text", "compare", "audit", "data"].includes(kept.view)) state.view = kept.view;
  if (Array.isArray(kept.versions) && kept.versions.length && kept.versions.every((one) => isText(one?.text) && isText(one?.question))) {
    state.versions = kept.versions.map(({ text, question }) => ({ text, question }));
  }
  if (Array.isArray(kept.chosen)) {
    state.chosen = kept.chosen.filter((choice) => modelNamed(choice?.model)?.explainers.includes(choice?.explainer));
  }
  if (kept.audit !== null && typeof kept.audit === "object") {
    const isValid = ([name, value]) => (name === "offset" ? Number.isInteger(value) && value >= 0 : isText(value));
    state.audit = Object.fromEntries(Object.entries(kept.audit).filter(isValid));
  }
}
