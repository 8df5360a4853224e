"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const storage = {
    // Browsers may forbid storage for local files; the page then forgets its theme when closed.
    get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* not stored */ } },
  };

  // Light or dark: the system's setting or the user's choice.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const themeButton = document.getElementById("theme");
  let theme = storage.get("farshore-theme") || "auto";
  const showTheme = () => {
    root.dataset.theme = theme === "auto" ? (dark.matches ? "dark" : "light") : theme;
    themeButton.textContent = `Theme: ${theme}`;
    recolour();
  };
  themeButton.addEventListener("click", () => {
    theme = { auto: "light", light: "dark", dark: "auto" }[theme];
    storage.set("farshore-theme", theme);
    showTheme();
  });
  dark.addEventListener("change", showTheme);

  // Published numbers.
  const paper = document.getElementById("paper");
  if (paper) paper.addEventListener("click", () => {
    const shown = paper.getAttribute("aria-pressed") !== "true";
    paper.setAttribute("aria-pressed", String(shown));
    document.body.classList.toggle("no-paper", !shown);
  });

  document.getElementById("print").addEventListener("click", () => print());

  // Tables: sort within each section, so that unranked rows stay separate; missing numbers are always last.
  const sort = (table, column, direction) => {
    for (const body of all("tbody", table)) {
      const rows = all("tr.row", body);
      rows.forEach((row, index) => { if (row.dataset.index === undefined) row.dataset.index = index; });
      const key = (row) => {
        const cell = row.cells[column];
        if (direction === "none") return Number(row.dataset.index);
        if (column === 0) return cell.textContent.trim().toLowerCase();
        return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
      };
      const sign = direction === "descending" ? -1 : 1;
      const keyed = rows.map((row) => [key(row), row]);
      keyed.sort(([a, first], [b, second]) => {
        if (a === null || b === null) return (a === null) - (b === null) || first.dataset.index - second.dataset.index;
        const order = typeof a === "string" ? a.localeCompare(b) : a - b;
        return sign * order || first.dataset.index - second.dataset.index;
      });
      body.append(...keyed.map(([, row]) => row));
    }
  };
  for (const section of all("section.table")) {
    const table = section.querySelector("table");
    const heads = all("thead th", table);
    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      const best = button.dataset.best;
      const worst = best === "ascending" ? "descending" : "ascending";
      button.addEventListener("click", () => {
        const next = { none: best, [best]: worst, [worst]: "none" }[head.getAttribute("aria-sort")];
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", next);
        sort(table, column, next);
      });
    });

    // Filter by words and by groups.
    const input = section.querySelector("input[type=search]");
    const chips = all(".chip", section);
    const count = section.querySelector(".count");
    const rows = all("tr.row", table);
    const filter = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      const hidden = new Set(chips.filter((chip) => chip.getAttribute("aria-pressed") === "false").map((chip) => chip.dataset.group));
      let shown = 0;
      for (const row of rows) {
        const name = row.dataset.name.toLowerCase();
        row.hidden = hidden.has(row.dataset.group) || !words.every((word) => name.includes(word));
        shown += !row.hidden;
      }
      for (const head of all("tr.section", table)) head.hidden = all("tr.row", head.parentNode).every((row) => row.hidden);
      count.textContent = shown === rows.length ? `${rows.length} rows` : `${shown} of ${rows.length} rows`;
    };
    input.addEventListener("input", filter);
    for (const chip of chips) chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      filter();
    });
    filter();
  }

  // The ranking: one table per metric, of which one is shown.
  const metric = document.getElementById("metric");
  if (metric) metric.addEventListener("change", () => {
    for (const box of all("[data-metric]")) box.hidden = box.dataset.metric !== metric.value;
  });

  // The block of commands to copy.
  for (const button of all(".copy")) button.addEventListener("click", async () => {
    const block = document.getElementById(button.dataset.copies);
    try {
      await navigator.clipboard.writeText(block.textContent);
    } catch {
      // Not every browser lets files write to the clipboard: select the text and let the browser copy it.
      getSelection().selectAllChildren(block);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });

  // Figures: drawn in the colours of the page.
  const data = document.getElementById("drawings");
  const drawings = data ? JSON.parse(data.textContent) : [];
  const coarse = matchMedia("(pointer: coarse)").matches;
  const colours = () => {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(name).trim();
    return { text: colour("--text"), grid: colour("--grid"), line: colour("--line"), soft: colour("--soft") };
  };
  const axes = (layout) => Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key));
  const themed = (layout) => {
    const { text, grid, line, soft } = colours();
    const coloured = structuredClone(layout);
    coloured.font = { ...coloured.font, color: text };
    coloured.hoverlabel = { ...coloured.hoverlabel, bgcolor: soft, bordercolor: line, font: { color: text } };
    coloured.modebar = { bgcolor: "rgba(0,0,0,0)", color: line, activecolor: text };
    coloured.dragmode = coarse ? false : "zoom";
    for (const key of axes(coloured)) Object.assign(coloured[key], { gridcolor: grid, linecolor: line, zerolinecolor: line, tickcolor: line });
    return coloured;
  };
  const plots = all("figure[data-figure]").map((figure) => ({
    figure,
    drawing: drawings[Number(figure.dataset.figure)],
    plot: figure.querySelector(".plot"),
    select: figure.querySelector("select"),
  }));
  const draw = ({ drawing, plot, select, figure }) => {
    const view = drawing.views[select ? Number(select.value) : 0];
    figure.querySelector(".note").textContent = view.note;
    const config = {
      responsive: true, displaylogo: false, displayModeBar: coarse ? false : "hover", modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
      toImageButtonOptions: { format: "svg", filename: drawing.name },
    };
    return Plotly.react(plot, structuredClone(view.data), themed(view.layout), config);
  };
  let drawn = false;
  function recolour() { if (drawn) plots.forEach(draw); }
  for (const plot of plots) if (plot.select) plot.select.addEventListener("change", () => draw(plot));
  showTheme();
  // The plotting script is compressed; browsers since 2023 can unpack it themselves.
  const unpack = async () => {
    const packed = document.getElementById("plotly");
    if (!packed) return;
    const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  };
  // One figure per frame, so that the page stays responsive while they are drawn.
  const next = (index) => {
    if (index < plots.length) draw(plots[index]).then(() => requestAnimationFrame(() => next(index + 1)));
    else { drawn = true; root.dataset.drawn = "yes"; }
  };
  unpack().then(() => next(0)).catch((error) => {
    for (const { plot } of plots) plot.textContent = `This browser cannot draw the figures (${error.message}); the tables show the same numbers.`;
    root.dataset.drawn = "no";
  });

  // When printing: the light theme, the first figure as wide as the paper, the others in two columns.
  const resize = (wide, narrow) => plots.forEach(({ plot }) => {
    const width = plot.closest(".figures") ? narrow : wide;
    if (plot.data) Plotly.relayout(plot, width ? { width, autosize: false } : { width: null, autosize: true });
  });
  addEventListener("beforeprint", () => { root.dataset.theme = "light"; recolour(); resize(960, 470); });
  addEventListener("afterprint", () => { showTheme(); resize(null, null); });
})();
