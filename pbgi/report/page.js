"use strict";
// Draws the figures, whose data are in the page as JSON. Nothing is asked of any other place.
for (const holder of document.querySelectorAll(".plot")) {
  const figure = JSON.parse(document.getElementById(holder.dataset.figure).textContent);
  const config = { responsive: true, displaylogo: false, showTips: false, modeBarButtonsToRemove: ["lasso2d", "select2d"] };
  Plotly.newPlot(holder, figure.data, figure.layout, config).then(() => holder.setAttribute("data-drawn", "true"));
}
