"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const clusters = data.clusters;
  const number = new Map(clusters.map((c) => [c.number, c]));
  const decided = (c) => ({ name: c.name, merged: c.merged, rejected: c.rejected });
  // What the page was made with is part of the key: decisions that were stored since are not undone by older ones.
  const key = "gcdbench-gallery-" + data.run + JSON.stringify(clusters.map(decided));
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
    for (const c of clusters) if (!c.known) kept[c.number] = decided(c);
    try { localStorage.setItem(key, JSON.stringify(kept)); } catch { /* as above */ }
  };

  const title = (c) => c.name || "cluster " + c.number;
  const colour = (c) => `hsl(${(c.number * 137.508) % 360} ${c.known ? 25 : 75}% 50%)`;

  // A sheet is decoded once and named by a short address: thousands of thumbnails must not repeat its bytes.
  const sheet = (sheets, index) => {
    sheets.urls ??= [];
    if (!sheets.urls[index]) {
      const bytes = Uint8Array.from(atob(sheets.pictures[index].split(",")[1]), (letter) => letter.charCodeAt(0));
      sheets.urls[index] = URL.createObjectURL(new Blob([bytes], { type: "image/jpeg" }));
    }
    return sheets.urls[index];
  };
  const place = (node, sheets, thumb, scale = 1) => {
    const side = sheets.side * scale, spot = thumb % data.perSheet;
    node.style.width = node.style.height = side + "px";
    node.style.backgroundImage = `url(${sheet(sheets, Math.floor(thumb / data.perSheet))})`;
    node.style.backgroundSize = `${data.perRow * side}px auto`;
    node.style.backgroundPosition = `${-(spot % data.perRow) * side}px ${-Math.floor(spot / data.perRow) * side}px`;
  };

  const sureness = (confidence) => (confidence == null ? "" : Math.round(100 * confidence) + " %");
  const enlarge = (sheets, image, label) => {
    place(byId("zoom-picture"), sheets, image.thumb, Math.min(340, window.innerWidth - 60) / sheets.side);
    byId("zoom-text").textContent = [label, sureness(image.confidence) && "confidence " + sureness(image.confidence), image.unlike ? "unlike everything seen" : ""].filter(Boolean).join(", ");
    byId("zoom-path").textContent = image.name;
    byId("zoom").showModal();
  };
  const picture = (image, label, side = "") => {
    const file = image.name.split(/[/\\]/).pop();
    const node = make("button", { type: "button", class: "thumb", "aria-label": `Enlarge ${label || file}`, onclick: () => enlarge(data.large, image, label) });
    place(node, data.large, image.thumb, 112 / data.large.side);
    const caption = [side || sureness(image.confidence), file].filter(Boolean).join(" · ");
    return make("figure", { title: image.name, class: image.unlike ? "unlike" : "" }, node, make("figcaption", {}, caption));
  };

  // Every image of a cluster, small, made only when somebody opens it.
  const everything = (c) => {
    const members = data.images.cluster.flatMap((own, i) => (own === c.number ? [i] : []));
    if (!members.length) return null;
    const count = members.length < c.size ? `${members.length} of the ${c.size} images` : c.size === 1 ? "the one image" : `all ${c.size} images`;
    const box = make("details", { class: "all" }, make("summary", {}, count + ", the surest first"));
    box.addEventListener("toggle", () => {
      if (!box.open || box.childElementCount > 1) return;
      const of = (i) => data.images.confidence[i] ?? 0;
      const small = members.sort((a, b) => of(b) - of(a)).map((i) => {
        const image = { thumb: i, name: data.images.names[i], confidence: data.images.confidence[i], unlike: data.images.unlike[i] };
        const node = make("button", { type: "button", class: "small" + (image.unlike ? " unlike" : ""), title: [sureness(image.confidence), image.name].filter(Boolean).join(" · "), "aria-label": "Enlarge " + image.name, onclick: () => enlarge(data.small, image, title(c)) });
        place(node, data.small, i, 48 / data.small.side);
        return node;
      });
      box.append(make("div", { class: "strip tight" }, ...small));
    });
    return box;
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

  const open = (c) => !c.known && !c.name && !c.rejected && c.merged == null;
  const progress = () => {
    const fresh = clusters.filter((c) => !c.known).length;
    byId("decided").textContent = fresh ? `${fresh - clusters.filter(open).length} of ${fresh} decided` : "";
  };
  const restyle = (c, card) => {
    card.classList.toggle("rejected", !!c.rejected);
    const button = card.querySelector(".reject");
    if (button) { button.setAttribute("aria-pressed", String(!!c.rejected)); button.textContent = c.rejected ? "Rejected" : "Reject"; }
    const tag = card.querySelector(".state");
    tag.textContent = c.rejected ? "rejected" : c.merged != null ? "same as " + title(number.get(c.merged)) : c.known ? "" : c.name ? "named" : "not decided";
    tag.hidden = !tag.textContent;
    tag.classList.toggle("done", tag.textContent !== "not decided");
    progress();
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
    legend(); paint();
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
      for (const part of [strip("labelled examples", c.examples), strip("put here, most like its labelled images", c.typical), strip("may not belong here: least like its labelled images", c.doubtful)]) if (part) body.append(part);
    } else {
      for (const part of [strip("most typical", c.typical), strip("most doubtful: lowest confidence", c.doubtful)]) if (part) body.append(part);
    }
    card.append(body);
    if (c.pairs.length) {
      const pairs = c.pairs.map(([own, known]) => make("div", { class: "pair" }, picture(own, "from " + title(c), "found"), picture(known, "labelled " + c.resembles, "labelled")));
      card.append(make("h3", {}, `its images (left) next to the most alike labelled ${c.resembles} (right): is it really something else?`), make("div", { class: "pairs" }, ...pairs));
    }
    const all = everything(c);
    if (all) card.append(all);
    restyle(c, card);
    return card;
  };

  const shown = () => {
    const show = byId("show").value, find = byId("find").value.trim().toLowerCase();
    const fits = (c) =>
      (show === "all" || (show === "new" && !c.known) || (show === "known" && c.known) ||
        (show === "open" && open(c))) &&
      (!find || title(c).toLowerCase().includes(find) || c.typical.concat(c.doubtful).some((i) => i.name.toLowerCase().includes(find)));
    const order = { size: (a, b) => b.size - a.size, likeness: (a, b) => b.likeness - a.likeness, doubt: (a, b) => b.unlike - a.unlike || b.size - a.size, number: (a, b) => a.number - b.number };
    return clusters.filter(fits).sort(order[byId("sort").value]);
  };

  const list = () => {
    const chosen = shown();
    byId("clusters").replaceChildren(...chosen.map(draw));
    byId("counted").textContent = `${chosen.length} of ${clusters.length} shown`;
    if (!chosen.length) byId("clusters").append(make("p", { class: "soft" }, "No cluster fits. Choose \"all clusters\", or empty the search."));
    progress();
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
    const style = getComputedStyle(document.documentElement);
    const radius = data.images.x.length > 1500 ? 2.2 : 3.5;
    for (let i = 0; i < data.images.x.length; i++) {
      const c = number.get(data.images.cluster[i]), [x, y] = spot(i, box);
      pen.beginPath(); pen.arc(x, y, i === hovered ? radius * 2 : radius, 0, 7);
      pen.fillStyle = c ? colour(c) : "#888"; pen.globalAlpha = c && c.known ? 0.55 : 0.9; pen.fill();
      if (data.images.unlike[i]) { pen.globalAlpha = 1; pen.lineWidth = 1.5; pen.strokeStyle = style.getPropertyValue("--bad"); pen.stroke(); }
    }
    pen.globalAlpha = 1; pen.font = "600 12px system-ui, sans-serif"; pen.textAlign = "center"; pen.lineWidth = 4; pen.lineJoin = "round";
    for (const c of clusters.length <= 40 ? clusters : []) {
      const own = data.images.cluster.flatMap((n, i) => (n === c.number ? [spot(i, box)] : []));
      if (!own.length) continue;
      // The member nearest to the middle: the middle itself may be in another cluster.
      const [mx, my] = [0, 1].map((axis) => own.reduce((sum, p) => sum + p[axis], 0) / own.length);
      const [x, y] = own.reduce((a, b) => ((a[0] - mx) ** 2 + (a[1] - my) ** 2 <= (b[0] - mx) ** 2 + (b[1] - my) ** 2 ? a : b));
      const half = pen.measureText(title(c)).width / 2 + 6, at = Math.max(half, Math.min(box.width - half, x));
      pen.strokeStyle = style.getPropertyValue("--paper"); pen.strokeText(title(c), at, y + 4);
      pen.fillStyle = style.getPropertyValue("--ink"); pen.fillText(title(c), at, y + 4);
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
    place(byId("tip-picture"), data.small, found, 96 / data.small.side);
    byId("tip-text").textContent = `${c ? title(c) : ""}${c && c.known ? " (known)" : ""} ${sureness(data.images.confidence[found])} ${data.images.names[found].split(/[/\\]/).pop()}`;
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
  // What 'gcdbench name' would refuse is said here, where it can be put right.
  const problems = () => {
    const found = [], taken = new Set(data.known);
    for (const c of clusters.filter((each) => !each.known)) {
      const seen = new Set([c.number]);
      for (let next = c; next?.merged != null; next = number.get(next.merged)) {
        if (seen.has(next.merged)) { found.push(`Cluster ${c.number} is merged into itself: one of these clusters must stay.`); break; }
        seen.add(next.merged);
      }
      if (!c.name || c.merged != null) continue;
      if (taken.has(c.name)) found.push(`Cluster ${c.number} has a name that is taken, "${c.name}": merge it into that one instead.`);
      taken.add(c.name);
    }
    return found;
  };
  const save = () => { byId("problems").textContent = problems().join(" "); byId("problems").hidden = !problems().length; byId("toml").value = toml(); byId("out").showModal(); byId("toml").select(); };
  byId("save").addEventListener("click", save);
  byId("close").addEventListener("click", () => byId("out").close());
  byId("zoom-close").addEventListener("click", () => byId("zoom").close());
  byId("zoom").addEventListener("click", (event) => { if (event.target === byId("zoom")) byId("zoom").close(); });
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
    if (event.target.matches("input, select, textarea") || byId("out").open || byId("zoom").open || event.ctrlKey || event.metaKey || event.altKey) {
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
