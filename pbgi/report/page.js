"use strict";
// Draws the figures, whose data are in the page as JSON. Nothing is asked of any other place.
for (const holder of document.querySelectorAll(".plot")) {
  const figure = JSON.parse(document.getElementById(holder.dataset.figure).textContent);
  // On a phone the tools would cover the figure, and fingers do what they are for.
  const tools = matchMedia("(hover: none), (max-width: 40rem)").matches ? false : "hover";
  const config = { responsive: true, displaylogo: false, displayModeBar: tools, showTips: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };
  Plotly.newPlot(holder, figure.data, figure.layout, config).then(() => holder.setAttribute("data-drawn", "true"));
}
