"use strict";
// Loads the page again, of a run that goes on. The browser keeps the place on the page. Whoever reads a plot is not
// disturbed: a page that is in use or out of sight waits.
const QUIET = 5000; // milliseconds without a sign of the reader
const every = 1000 * Number(document.documentElement.dataset.every);
let used = -QUIET;
for (const kind of ["pointermove", "pointerdown", "wheel", "touchmove", "keydown"]) {
  addEventListener(kind, () => { used = performance.now(); }, { passive: true });
}
let due = every;
setInterval(() => {
  if (performance.now() < due || document.hidden || performance.now() < used + QUIET) return;
  due = Infinity;
  location.reload();
}, Math.min(every, 250));
