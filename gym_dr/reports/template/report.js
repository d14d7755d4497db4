// Draws the plots in the reader's color scheme and makes every point reachable by keyboard.
"use strict";

const figures = JSON.parse(document.getElementById("figures").textContent);
const reading = document.getElementById("reading");
const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const byFinger = matchMedia("(pointer: coarse)").matches; // dragging with a finger scrolls, it does not zoom
const BUTTONS = [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]];
const PRINT_WIDTH = 660; // pixels; A4 without margins

let printing = false;

/** A Plotly template with everything that depends on light or dark. */
function template() {
  const dark = darkScheme.matches && !printing;
  const ink = dark ? "#e6e9ed" : "#1b1e23";
  const line = dark ? "#363d47" : "#d5dae1";
  const panel = dark ? "#1d2126" : "#ffffff";
  const axis = { gridcolor: line, linecolor: line, zerolinecolor: line, tickcolor: line, automargin: true };
  return {
    layout: {
      font: { color: ink, family: "system-ui, sans-serif", size: 13 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      hoverlabel: { bgcolor: panel, bordercolor: line, font: { color: ink } },
      legend: { bgcolor: "rgba(0,0,0,0)" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: dark ? "#a0a9b5" : "#5a6270", activecolor: ink },
      xaxis: axis,
      yaxis: axis,
      dragmode: byFinger ? false : "zoom",
    },
    data: { bar: [{ error_x: { color: ink } }] },
  };
}

function draw(div) {
  const { data, layout } = figures[div.id];
  div.style.height = `${layout.height}px`; // Plotly drops the layout's height when the window's size changes
  const config = { responsive: true, displaylogo: false, modeBarButtons: BUTTONS, displayModeBar: true };
  Plotly.newPlot(div, data, { ...layout, template: template() }, config);
  div.addEventListener("keydown", (event) => walk(div, event));
  div.addEventListener("blur", () => Plotly.Fx.unhover(div));
}

/** Draws visible plots that are not drawn yet; hidden ones would have no width. */
function drawVisible() {
  for (const div of document.querySelectorAll(".view:not([hidden]) .plot:not(.js-plotly-plot)")) draw(div);
}

function drawn() {
  return document.querySelectorAll(".view:not([hidden]) .js-plotly-plot");
}

function recolor() {
  for (const div of document.querySelectorAll(".js-plotly-plot")) Plotly.relayout(div, { template: template() });
}

function choose(select) {
  for (const view of document.querySelectorAll(`[data-view-of="${select.dataset.section}"]`)) {
    view.hidden = view.dataset.view !== select.value;
  }
  drawVisible();
  for (const div of drawn()) Plotly.Plots.resize(div);
}

/** The places that arrow keys visit, in rows: the points of a line, the bars of a policy, the tiles of one height. */
function places(div) {
  const found = [];
  div.calcdata.forEach((points, curve) => {
    const trace = points[0].trace;
    if (trace.hoverinfo === "skip" || trace.visible !== true || trace.type === "box") return;
    if (trace.type === "heatmap") { // Plotly addresses its tiles by coordinates only
      const { x, y, z } = points[0]; // x and y are edges
      const middle = (edges, i) => (edges[i] + edges[i + 1]) / 2;
      z.forEach((values, row) => values.forEach((_, point) => {
        found.push({ row, point, event: { xval: middle(x, point), yval: middle(y, row) } });
      }));
    } else {
      points.forEach((_, point) => found.push({ row: curve, point, event: [{ curveNumber: curve, pointNumber: point }] }));
    }
  });
  return found;
}

/** Left and right move the hover label from point to point, up and down from line to line; Escape hides it. */
function walk(div, event) {
  const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 0], ArrowDown: [-1, 0] };
  if (event.target !== div) return; // the buttons keep their keys
  if (event.key === "Escape") Plotly.Fx.unhover(div);
  if (!(event.key in steps)) return;
  event.preventDefault();
  const all = places(div);
  if (!all.length) return;
  const now = div.place;
  let next = all[0];
  if (now !== undefined) {
    const [rows, along] = steps[event.key];
    const row = all.filter((p) => p.row === now.row + rows);
    next = row.length ? row[Math.max(0, Math.min(row.length - 1, now.point + along))] : now;
  }
  div.place = next;
  Plotly.Fx.hover(div, next.event, "xy");
  reading.textContent = [...div.querySelectorAll(".hoverlayer text")].map((text) => text.textContent).join(" ");
}

function forPrint(now) {
  printing = now;
  for (const details of document.querySelectorAll("details")) details.open = now;
  for (const div of drawn()) {
    Plotly.relayout(div, { template: template(), ...(now ? { width: PRINT_WIDTH } : { width: null, autosize: true }) });
  }
}

drawVisible();
for (const select of document.querySelectorAll("select[data-section]")) {
  select.addEventListener("change", () => choose(select));
  if (select.value !== "0") choose(select); // some browsers keep the choice when a page is loaded again
}
darkScheme.addEventListener("change", recolor);
addEventListener("beforeprint", () => forPrint(true));
addEventListener("afterprint", () => forPrint(false));
