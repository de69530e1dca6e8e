// The audit view: the numbers of a report, and the texts behind each of them.

import { call, element, fillSelect, guarded, make, modelNamed, number, percent, rememberInAddress, say, state, choice, warnings } from "./page.js";
import { refreshJobs, showJobs } from "./job_list.js";
import { showText } from "./text_view.js";

const PAGE = 20;
let shown = null; // { job, model }
let openText = () => {};

export async function updateAudit() {
  rememberInAddress();
  say("");
  await refreshJobs();
  const { job } = state.audit;
  if (job && shown?.job !== job) await guarded(showReport)(job);
}

async function showReport(job) {
  const address = `/v1/jobs/${encodeURIComponent(job)}`;
  const [report, { model }] = await Promise.all([call(`${address}/report`), call(address)]);
  shown = { job, model };
  if (state.audit.job !== job) state.audit = { job };
  element("report").hidden = false;
  element("report-title").textContent = `${report.facts.model}: ${report.facts.explanation}, ${report.facts.texts}`;
  element("verdicts").replaceChildren(...report.verdicts.map(({ title, answer, why, caveat }) =>
    make("li", {}, make("strong", { textContent: title }), " ", drawAnswer(answer), ` ${why} ${caveat}`.trimEnd())));
  element("report-notes").replaceChildren(...warnings(report.health).map((warning) => make("li", {}, warning)), ...report.notes.map((note) => make("li", { textContent: note.message })));
  drawNumbers(report.rows);
  drawOrders(report.rows.filter((row) => row.sortable));
  fillSelect(element("filter-label"), [["", "all"], ...report.labels.map((label) => [`=${label}`, label])], state.audit.label);
  element("filter-wrong").value = state.audit.wrong ?? "";
  element("filter-word").value = state.audit.word ?? "";
  await drawTexts();
}

const ICONS = { yes: "✓", undecided: "~", no: "✗", "not meaningful": "/", "not measured": "–" }; // as in the report

function drawAnswer(answer) {
  const icon = make("span", { textContent: `${ICONS[answer] ?? ""} ` });
  icon.setAttribute("aria-hidden", "true");
  return make("span", { className: `answer ${answer.replace(" ", "-")}` }, icon, answer);
}

const MAIN = [ // the first measure that the audit has
  ["largest shift", ["jensen-shannon/3-synonyms", "jensen-shannon/1-synonym", "jensen-shannon/noise"]],
  ["least faithful", ["comprehensiveness"]],
  ["least agreement with people", ["average-precision", "auprc", "token-f1"]],
];

const bySection = (rows) => [...new Set(rows.map((row) => row.section))].map((section) => [section, rows.filter((row) => row.section === section)]);

/** The orders of the texts: the most useful ones, then all measures. */
function drawOrders(rows) {
  const names = rows.map((row) => row.measure);
  const option = ([value, text]) => make("option", { value, textContent: text });
  const main = MAIN.map(([text, measures]) => [measures.find((name) => names.includes(name)), text]).filter(([name]) => name);
  element("order").replaceChildren(
    ...[["order", "order of the data"], ["errors", "errors, most confident first"], ...main.map(([name, text]) => [name, `${text} (${name})`])].map(option),
    ...bySection(rows).map(([section, all]) => make("optgroup", { label: `${section}, worst first` }, ...all.map(({ measure }) => option([measure, measure])))),
  );
  if ([...element("order").options].some(({ value }) => value === state.audit.order)) element("order").value = state.audit.order;
}

/** A table of each section, and one of the numbers that do not apply. */
function drawNumbers(rows) {
  const others = rows.filter((row) => !row.n), sections = bySection(rows.filter((row) => row.n));
  if (others.length) sections.push(["Not measured", others]);
  element("numbers").replaceChildren(...sections.map(([section, all]) => {
    const table = make("div", { className: "scroll", tabIndex: 0 }, drawSection(all));
    table.setAttribute("role", "region");
    table.setAttribute("aria-label", section);
    return make("details", {}, make("summary", { textContent: `${section} (${all.length})` }), table);
  }));
}

function drawSection(rows) {
  const header = ["measure", "explainer", "value", "95 % interval", "texts", ""];
  const body = rows.map((row) => {
    const interval = row.interval === null ? "" : `${number(row.interval[0])} to ${number(row.interval[1])}`;
    const cells = [row.measure, row.settings.explainer ?? "", row.n ? number(row.value) : row.note, interval, String(row.n)];
    const action = make("td");
    if (row.sortable) {
      const button = make("button", { type: "button", className: "quiet", textContent: "Texts" });
      button.setAttribute("aria-label", `texts sorted by ${row.measure}`);
      button.addEventListener("click", guarded(async () => {
        element("order").value = row.measure;
        await filter();
        element("filters").scrollIntoView();
        element("order").focus();
      }));
      action.append(button);
    }
    return make("tr", {}, ...cells.map((text) => make("td", { textContent: text })), action);
  });
  return make("table", { className: "grid" }, make("thead", {}, make("tr", {}, ...header.map((text) => make("th", { scope: "col", textContent: text })))),
    make("tbody", {}, ...body));
}

async function filter() {
  const { job } = state.audit;
  state.audit = { job, order: element("order").value, label: element("filter-label").value, wrong: element("filter-wrong").value, word: element("filter-word").value.trim(), offset: 0 };
  rememberInAddress();
  await drawTexts();
}

let requested = 0;

async function drawTexts() {
  const { job, order = "order", label = "", wrong = "", word = "", offset = 0 } = state.audit;
  const query = new URLSearchParams({ order, offset: String(offset), limit: String(PAGE) });
  if (label) query.append("label", label.slice(1)); // "=…": a label may be empty
  if (wrong) query.append("wrong", wrong);
  if (word) query.append("word", word);
  const asked = ++requested;
  const { total, texts } = await call(`/v1/jobs/${encodeURIComponent(job)}/texts?${query}`);
  if (asked !== requested) return;
  const isMeasure = !["order", "errors"].includes(order);
  const header = ["text", "label", "predicted", "probability", ...(isMeasure ? [order] : [])];
  const rows = texts.map((row) => {
    const button = make("button", { type: "button", className: "link", textContent: row.text });
    button.addEventListener("click", () => { showText(row.text, row.question); chooseModel(); openText(); });
    const predicted = make("td", { textContent: row.wrong ? `${row.predicted} (wrong)` : row.predicted, className: row.wrong ? "flip" : "" });
    return make("tr", {}, make("td", {}, button), make("td", { textContent: row.label ?? "–" }), predicted,
      make("td", { className: "number", textContent: percent(row.probability) }),
      ...(isMeasure ? [make("td", { className: "number", textContent: number(row.values[order] ?? null) })] : []));
  });
  const end = Math.min(offset + PAGE, total);
  const caption = total ? `Texts ${offset + 1} to ${end} of ${total}; select one to open it` : "No text passes the filters";
  element("audit-texts").className = "grid";
  element("audit-texts").replaceChildren(make("caption", { id: "texts-caption", className: "hint", textContent: caption }),
    make("thead", {}, make("tr", {}, ...header.map((text) => make("th", { scope: "col", textContent: text })))), make("tbody", {}, ...rows));
  const { activeElement } = document;
  element("earlier").disabled = offset === 0;
  element("later").disabled = end >= total;
  if (activeElement === element("earlier") && activeElement.disabled) element("later").focus();
  if (activeElement === element("later") && activeElement.disabled) element("earlier").focus();
}

/** Make sure that the audited model is shown in the text view. */
function chooseModel() {
  const name = shown?.model;
  const model = name && modelNamed(name);
  if (model && !state.chosen.some((choice) => choice.model === name)) state.chosen.push({ model: name, explainer: model.explainers[0] });
}

async function startAudit(event) {
  event.preventDefault();
  const limit = element("audit-limit").valueAsNumber;
  await call("/v1/audit", { model: element("audit-model").value, ...(Number.isInteger(limit) && { limit }) });
  say("The audit has started.");
  await refreshJobs();
}

export function startAuditView(open) {
  openText = open;
  fillSelect(element("audit-model"), state.models.map(choice));
  element("audit-form").hidden = !state.data;
  element("audit-hint").textContent = state.data
    ? `Data: ${state.data.name}, ${state.data.texts} texts. An audit runs in the background.`
    : "This server has no data to audit. Start it with --data DATA, or send texts to POST /v1/audit.";
  element("audit-form").addEventListener("submit", guarded(startAudit));
  for (const id of ["order", "filter-label", "filter-wrong"]) element(id).addEventListener("change", guarded(filter));
  element("filter-word").addEventListener("input", guarded(filter));
  element("filters").addEventListener("submit", (event) => event.preventDefault());
  const turn = (step) => guarded(async () => {
    state.audit.offset = Math.max(0, (state.audit.offset ?? 0) + step);
    rememberInAddress();
    await drawTexts();
  });
  element("earlier").addEventListener("click", turn(-PAGE));
  element("later").addEventListener("click", turn(PAGE));
  showJobs("audit-jobs", "audit", async (job) => {
    state.audit = { job: job.id };
    await guarded(showReport)(job.id);
    rememberInAddress();
  });
}
