"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const clusters = data.clusters;
  const number = new Map(clusters.map((c) => [c.number, c]));
  const key = "gcdbench-gallery-" + data.run;
  let current = -1;

  const make = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "class") node.className = value;
      else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null));
    return node;
  };

  // Decisions survive a reload where the browser allows it.
  try {
    for (const [id, kept] of Object.entries(JSON.parse(localStorage.getItem(key) || "{}"))) {
      const cluster = number.get(Number(id));
      if (cluster && !cluster.known) Object.assign(cluster, kept);
    }
  } catch { /* a page opened from a file may have no storage */ }
  const remember = () => {
    const kept = {};
    for (const c of clusters) if (!c.known) kept[c.number] = { name: c.name, merged: c.merged, rejected: c.rejected };
    try { localStorage.setItem(key, JSON.stringify(kept)); } catch { /* as above */ }
  };

  const title = (c) => c.name || "cluster " + c.number;
  const colour = (c) => `hsl(${(c.number * 137.508) % 360} ${c.known ? 25 : 75}% 50%)`;

  const place = (node, sheets, thumb, scale = 1) => {
    const side = sheets.side * scale, spot = thumb % data.perSheet;
    node.style.width = node.style.height = side + "px";
    node.style.backgroundImage = `url(${sheets.pictures[Math.floor(thumb / data.perSheet)]})`;
    node.style.backgroundSize = `${data.perRow * side}px auto`;
    node.style.backgroundPosition = `${-(spot % data.perRow) * side}px ${-Math.floor(spot / data.perRow) * side}px`;
  };

  const picture = (image, label) => {
    const node = make("div", { class: "thumb", role: "img", "aria-label": label || image.name });
    place(node, data.large, image.thumb);
    const sure = image.confidence === undefined ? "" : ` · ${Math.round(100 * image.confidence)} %`;
    const file = image.name.split("/").pop();
    return make("figure", { title: image.name + sure, class: image.unlike ? "unlike" : "" }, node, make("figcaption", {}, file));
  };

  const strip = (heading, images) =>
    images.length ? make("div", {}, make("h3", {}, heading), make("div", { class: "strip" }, ...images.map((i) => picture(i)))) : null;

  const decisions = (c, card) => {
    if (c.known) return null;
    const name = make("input", { type: "text", value: c.name, placeholder: "a name for this cluster", "aria-label": "Name of cluster " + c.number, class: "name" });
    name.addEventListener("input", () => { c.name = name.value.trim(); remember(); retitle(); });
    const into = make("select", { "aria-label": "Merge cluster " + c.number + " into", class: "merge" }, make("option", { value: "" }, "keep apart"));
    for (const other of clusters) if (other !== c) into.append(make("option", { value: other.number, selected: c.merged === other.number }, "same as " + title(other)));
    into.addEventListener("change", () => { c.merged = into.value === "" ? null : Number(into.value); remember(); restyle(c, card); });
    const reject = make("button", { type: "button", class: "reject", "aria-pressed": String(!!c.rejected) }, "Reject");
    reject.addEventListener("click", () => { c.rejected = !c.rejected; remember(); restyle(c, card); });
    return make("div", { class: "decide" }, name, into, reject);
  };

  const restyle = (c, card) => {
    card.classList.toggle("rejected", !!c.rejected);
    const button = card.querySelector(".reject");
    if (button) { button.setAttribute("aria-pressed", String(!!c.rejected)); button.textContent = c.rejected ? "Rejected" : "Reject"; }
    const tag = card.querySelector(".state");
    tag.textContent = c.rejected ? "rejected" : c.merged != null ? "same as " + title(number.get(c.merged)) : c.known ? "" : c.name ? "named" : "not decided";
    tag.hidden = !tag.textContent;
  };

  const retitle = () => {
    for (const card of document.querySelectorAll("article")) {
      const c = number.get(Number(card.dataset.number));
      card.querySelector("h2").textContent = title(c);
      for (const option of card.querySelectorAll(".merge option")) {
        if (option.value !== "") option.textContent = "same as " + title(number.get(Number(option.value)));
      }
      restyle(c, card);
    }
    legend();
  };

  const draw = (c) => {
    const alike = c.resembles ? `most like ${c.resembles} (${c.likeness.toFixed(2)})` : "";
    const card = make("article", { id: "cluster-" + c.number, tabindex: -1, "data-number": c.number },
      make("header", {},
        make("h2", {}, title(c)),
        make("span", { class: "tag" + (c.known ? "" : " new") }, c.known ? "known class" : "new"),
        make("span", { class: "tag" }, c.size + (c.size === 1 ? " image" : " images")),
        c.unlike ? make("span", { class: "tag bad" }, c.unlike + " unlike everything seen") : null,
        alike ? make("span", { class: "tag" }, alike) : null,
        make("span", { class: "tag state" })));
    const choose = decisions(c, card);
    if (choose) card.append(choose);
    const body = make("div", { class: "columns" });
    if (c.known) {
      for (const part of [strip("labelled examples", c.examples), strip("put here with most reason", c.typical), strip("may not belong here: least like its labelled images", c.doubtful)]) if (part) body.append(part);
    } else {
      for (const part of [strip("most typical", c.typical), strip("most doubtful", c.doubtful)]) if (part) body.append(part);
    }
    card.append(body);
    if (c.pairs.length) {
      const pairs = c.pairs.map(([own, known]) => make("div", { class: "pair" }, picture(own, "from this cluster: " + own.name), picture(known, "labelled " + c.resembles + ": " + known.name)));
      card.append(make("h3", {}, `this cluster beside labelled ${c.resembles}: is it really something else?`), make("div", { class: "pairs" }, ...pairs));
    }
    restyle(c, card);
    return card;
  };

  const shown = () => {
    const show = byId("show").value, find = byId("find").value.trim().toLowerCase();
    const fits = (c) =>
      (show === "all" || (show === "new" && !c.known) || (show === "known" && c.known) ||
        (show === "open" && !c.known && !c.name && !c.rejected && c.merged == null)) &&
      (!find || title(c).toLowerCase().includes(find) || c.typical.concat(c.doubtful).some((i) => i.name.toLowerCase().includes(find)));
    const order = { size: (a, b) => b.size - a.size, likeness: (a, b) => b.likeness - a.likeness, doubt: (a, b) => b.unlike - a.unlike || b.size - a.size, number: (a, b) => a.number - b.number };
    return clusters.filter(fits).sort(order[byId("sort").value]);
  };

  const list = () => {
    const chosen = shown();
    byId("clusters").replaceChildren(...chosen.map(draw));
    byId("counted").textContent = `${chosen.length} of ${clusters.length}`;
    current = -1;
  };

  const go = (step) => {
    const cards = [...document.querySelectorAll("article")];
    if (!cards.length) return;
    current = Math.max(0, Math.min(cards.length - 1, current + step));
    cards.forEach((card, i) => card.classList.toggle("current", i === current));
    cards[current].scrollIntoView({ block: "start" });
    cards[current].focus({ preventScroll: true });
  };

  const visit = (id) => {
    if (!shown().some((c) => c.number === id)) { byId("show").value = "all"; byId("find").value = ""; list(); }
    current = [...document.querySelectorAll("article")].findIndex((card) => Number(card.dataset.number) === id);
    go(0);
  };

  // The map
  const canvas = byId("plane"), tip = byId("tip");
  let hovered = -1;
  const spot = (i, box) => [12 + data.images.x[i] * (box.width - 24), 12 + (1 - data.images.y[i]) * (box.height - 24)];
  const paint = () => {
    const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    canvas.width = box.width * ratio; canvas.height = box.height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const radius = data.images.x.length > 1500 ? 2.2 : 3.5;
    for (let i = 0; i < data.images.x.length; i++) {
      const c = number.get(data.images.cluster[i]), [x, y] = spot(i, box);
      pen.beginPath(); pen.arc(x, y, i === hovered ? radius * 2 : radius, 0, 7);
      pen.fillStyle = c ? colour(c) : "#888"; pen.globalAlpha = c && c.known ? 0.55 : 0.9; pen.fill();
      if (data.images.unlike[i]) { pen.globalAlpha = 1; pen.lineWidth = 1.5; pen.strokeStyle = getComputedStyle(document.body).getPropertyValue("--bad"); pen.stroke(); }
    }
  };
  const nearest = (event) => {
    const box = canvas.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    let best = -1, least = 225;
    for (let i = 0; i < data.images.x.length; i++) {
      const [x, y] = spot(i, box), far = (x - px) ** 2 + (y - py) ** 2;
      if (far < least) { least = far; best = i; }
    }
    return best;
  };
  const point = (event) => {
    const found = nearest(event);
    if (found !== hovered) { hovered = found; paint(); }
    tip.hidden = found < 0;
    if (found < 0) return;
    const c = number.get(data.images.cluster[found]), box = canvas.getBoundingClientRect();
    place(byId("tip-picture"), data.small, found, 2);
    byId("tip-text").textContent = `${c ? title(c) : ""}${c && c.known ? " (known)" : ""}, ${Math.round(100 * data.images.confidence[found])} %: ${data.images.names[found].split("/").pop()}`;
    const [x, y] = spot(found, box);
    tip.style.left = Math.min(x + 14, box.width - 180) + "px";
    tip.style.top = Math.max(0, Math.min(y + 14, box.height - 150)) + "px";
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerleave", () => { hovered = -1; tip.hidden = true; paint(); });
  canvas.addEventListener("click", (event) => { const found = nearest(event); if (found >= 0) visit(data.images.cluster[found]); });
  window.addEventListener("resize", paint);

  const legend = () => byId("legend").replaceChildren(...clusters.map((c) => {
    const dot = make("span", { class: "dot" });
    dot.style.background = colour(c);
    return make("button", { type: "button", onclick: () => visit(c.number) }, dot, `${title(c)} (${c.size})`);
  }));

  // names.toml
  const quote = (text) => JSON.stringify(text).replace(/\u007f/g, "\\u007F");
  const toml = () => {
    const lines = ["# Decisions on the clusters of one run; give them back with: gcdbench name " + data.run + " names.toml", `run = ${quote(data.run)}`];
    for (const c of clusters) {
      if (c.known || !(c.name || c.rejected || c.merged != null)) continue;
      lines.push("", `[clusters.${c.number}]`);
      if (c.name) lines.push(`name = ${quote(c.name)}`);
      if (c.merged != null) lines.push(`merge_into = ${c.merged}`);
      if (c.rejected) lines.push("rejected = true");
    }
    return lines.join("\n") + "\n";
  };
  const save = () => { byId("toml").value = toml(); byId("out").showModal(); byId("toml").select(); };
  byId("save").addEventListener("click", save);
  byId("close").addEventListener("click", () => byId("out").close());
  byId("download").addEventListener("click", () => {
    const link = make("a", { href: "data:application/toml;charset=utf-8," + encodeURIComponent(toml()), download: "names.toml" });
    document.body.append(link); link.click(); link.remove();
  });

  const help = () => { const box = byId("keys"); box.hidden = !box.hidden; byId("help").setAttribute("aria-expanded", String(!box.hidden)); };
  byId("help").addEventListener("click", help);
  byId("theme").addEventListener("click", () => {
    const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = root.dataset.theme || (dark ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark"; paint();
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select, textarea") || byId("out").open || event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Escape" && event.target.matches("input, select")) event.target.blur();
      return;
    }
    const card = document.querySelectorAll("article")[current];
    const press = { j: () => go(1), k: () => go(-1), n: () => card?.querySelector(".name")?.focus(), m: () => card?.querySelector(".merge")?.focus(), r: () => card?.querySelector(".reject")?.click(), "/": () => byId("find").focus(), s: save, "?": help }[event.key];
    if (press) { event.preventDefault(); press(); }
  });
  for (const id of ["show", "sort"]) byId(id).addEventListener("change", list);
  byId("find").addEventListener("input", list);
  if (!clusters.some((c) => !c.known)) byId("show").value = "all";
  list(); legend(); paint();
})();
