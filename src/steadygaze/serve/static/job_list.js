// Jobs of the server: progress, cancel, delete and downloads.  The server keeps them when the page is closed.

import { call, element, guarded, make, request, save, say } from "./page.js";

const EVERY = 700; // milliseconds
const ACTIVE = ["waiting", "running"];
const WORDS = { waiting: "waits for other jobs", running: "runs", done: "done", failed: "failed", canceled: "canceled" };

const FORMATS = { csv: "CSV", parquet: "Parquet", html: "HTML", json: "JSON" };

const lists = []; // { id, kind, open }
let timer = null;
let before = new Map();

export function showJobs(id, kind, open = null) {
  lists.push({ id, kind, open });
}

export async function refreshJobs() {
  clearTimeout(timer);
  timer = null;
  let jobs;
  try {
    ({ jobs } = await call("/v1/jobs"));
  } catch (error) {
    say(error.message, true);
    timer = setTimeout(refreshJobs, 5 * EVERY);
    return;
  }
  for (const list of lists) draw(list, jobs.filter((job) => job.kind === list.kind).reverse());
  for (const job of jobs) {
    const was = before.get(job.id);
    if (was && was !== job.state && !ACTIVE.includes(job.state)) {
      say(`${job.name}: ${WORDS[job.state]}${job.message ? `: ${job.message}` : ""}.`, job.state === "failed");
      if (job.state === "done") lists.find((list) => list.kind === job.kind)?.open?.(job);
    }
  }
  before = new Map(jobs.map((job) => [job.id, job.state]));
  if (jobs.some((job) => ACTIVE.includes(job.state))) timer = setTimeout(refreshJobs, EVERY);
}

function draw({ id, open }, jobs) {
  const box = element(id);
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  const items = jobs.map((job) => drawJob(job, open));
  box.replaceChildren(jobs.length ? make("ul", { className: "jobs" }, ...items) : make("p", { className: "hint", textContent: "No jobs yet." }));
  if (focused) (box.querySelector(`[data-key="${CSS.escape(focused)}"]`) ?? box.querySelector("button") ?? box).focus();
}

function drawJob(job, open) {
  const percent = job.total ? `${Math.floor((100 * job.done) / job.total)} %` : "";
  const texts = job.texts === null ? "" : `, ${job.texts} texts`;
  const detail = job.message || (job.state === "done" && job.kind === "explain" ? `${job.total} texts` : "");
  const what = job.state === "running" ? `${job.activity} ${percent}` : `${WORDS[job.state]}${detail ? `: ${detail}` : ""}`;
  const item = make("li", {}, make("strong", { textContent: job.name }), ` (${job.model}${texts}, ${new Date(job.created).toLocaleTimeString()}) `,
    make("span", { textContent: what, className: job.state === "failed" ? "flip" : "" }));
  if (job.state === "running") {
    const bar = make("progress", job.total ? { max: job.total, value: job.done } : {});
    bar.setAttribute("aria-label", `progress of ${job.name}`);
    item.append(bar);
  }
  const row = make("div", { className: "row" });
  const add = (text, work) => {
    const button = make("button", { type: "button", className: "quiet", textContent: text });
    button.setAttribute("aria-label", `${text}: ${job.name}`);
    button.dataset.key = `${job.id} ${text}`;
    button.addEventListener("click", guarded(work));
    row.append(button);
  };
  if (ACTIVE.includes(job.state)) add("Cancel", async () => { await call(`/v1/jobs/${job.id}/cancel`, {}); await refreshJobs(); });
  if (job.state === "done" && open) add("Show", () => open(job));
  for (const format of job.formats) add(`Download ${FORMATS[format]}`, () => download(job, format));
  if (!ACTIVE.includes(job.state)) add("Delete", async () => { await request(`/v1/jobs/${job.id}`, { method: "DELETE" }); await refreshJobs(); });
  item.append(row);
  return item;
}

async function download(job, format) {
  const response = await request(`/v1/jobs/${job.id}/result?format=${format}`);
  save(`${job.kind === "audit" ? "audit" : "explained"}-${job.id}.${format}`, await response.blob());
}
