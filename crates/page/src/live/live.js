
"use strict";
(() => {
  // Rows of a table before its button shows the rest.
  const FIRST = 8;
  const SVG = "http://www.w3.org/2000/svg";
  const at = (id) => document.getElementById(id);
  let history = [];
  let keep = 120;
  let live = "Live";
  let paused = false;
  const opened = new Set();

  // Every text of an event goes through here, as text.
  const make = (name, text, attributes = {}) => {
    const e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    return e;
  };
  const draw = (name, attributes) => {
    const e = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    return e;
  };
  const say = (text, tone) => {
    const state = at("state");
    if (state.textContent !== text) state.textContent = text;
    state.className = tone;
  };

  const trend = (name) => {
    const points = history.map((h) => h.find((f) => f.name === name));
    const known = points.filter((f) => f);
    const svg = draw("svg", { viewBox: "0 0 100 32", preserveAspectRatio: "none", role: "img" });
    const by = (pick) => known.reduce((a, b) => (pick(b.value, a.value) ? b : a));
    const least = by((b, a) => b < a);
    const most = by((b, a) => b > a);
    const span = most.value - Math.min(0, least.value) || 1;
    const step = 100 / Math.max(1, keep - 1);
    const x = (i) => 100 - (points.length - 1 - i) * step;
    const y = (v) => 30 - (28 * (v - Math.min(0, least.value))) / span;
    const line = points.flatMap((f, i) => (f ? [`${x(i).toFixed(2)},${y(f.value).toFixed(2)}`] : []));
    svg.append(draw("polyline", { points: line.join(" "), class: "trend" }));
    const label = `${name}, last ${known.length} intervals: least ${least.text}, most ${most.text}`;
    svg.setAttribute("aria-label", label);
    const title = draw("title", {});
    title.textContent = label;
    svg.append(title);
    return svg;
  };

  const figures = (headline) => {
    at("figures").replaceChildren(...headline.map((f) => {
      const item = make("li");
      item.append(
        make("span", f.name, { class: "name" }),
        make("span", f.text, { class: "now" }),
        make("span", f.about, { class: "part" }),
        trend(f.name),
      );
      return item;
    }));
  };

  const box = (n) => {
    const svg = draw("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" });
    svg.append(draw("rect", { width: 1, height: 1, class: `b${n}` }));
    return svg;
  };

  const bars = (b) => {
    const keys = b.legend.map((name, n) => {
      const key = make("span", undefined, { class: "key" });
      key.append(box(n), name);
      return key;
    });
    at("legend").replaceChildren(`${b.about}. `, ...keys);
    at("bars").replaceChildren(...b.cpus.map((c) => {
      const row = make("div", undefined, { class: "cpu" });
      const svg = draw("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none", role: "img" });
      const parts = c.shares.map((s, n) => `${b.legend[n]} ${(100 * s).toFixed(1)}%`);
      svg.setAttribute("aria-label", `CPU ${c.cpu}: ${parts.join(", ") || "not known"}`);
      let x = 0;
      c.shares.forEach((share, n) => {
        const width = Math.min((1000 * share) / b.full, 1000 - x);
        svg.append(draw("rect", { x, width, height: 10, class: `b${n}` }));
        x += width;
      });
      row.append(make("span", `CPU ${c.cpu}`), svg, make("span", c.text));
      return row;
    }));
  };

  // A table's box stays, so that scrolling and focus do; its rows are new each time.
  const table = (place, t) => {
    const id = `table-${t.title.replaceAll(" ", "-")}`;
    let part = at(id);
    if (!part) {
      part = make("div", undefined, { id });
      const attributes = { class: "table", tabindex: "0", role: "region", "aria-label": t.title };
      const more = make("button", "", { type: "button", "aria-expanded": "false" });
      more.addEventListener("click", () => {
        const open = !opened.delete(t.title);
        if (open) opened.add(t.title);
        table(place, part.shown);
      });
      part.append(make("h3", t.title), make("div", undefined, attributes), make("p", "", { class: "missing" }), more);
      place.append(part);
    }
    part.shown = t;
    const [, wrapper, note, more] = part.children;
    const first = t.title === "CPUs" ? 2 * FIRST : FIRST;
    const open = opened.has(t.title);
    const rows = open ? t.rows : t.rows.slice(0, first);
    const style = (n) => ({ class: t.right[n] ? "figure" : "words" });
    const head = make("tr");
    t.heads.forEach((h, n) => head.append(make("th", h, { scope: "col", ...style(n) })));
    const body = make("tbody");
    rows.forEach((cells) => {
      const row = make("tr");
      cells.forEach((c, n) => {
        row.append(n ? make("td", c, style(n)) : make("th", c, { scope: "row", ...style(n) }));
      });
      body.append(row);
    });
    const whole = make("table");
    const top = make("thead");
    top.append(head);
    whole.append(make("caption", t.title), top, body);
    wrapper.replaceChildren(...(t.rows.length ? [whole] : []));
    const left = t.of - t.rows.length;
    note.textContent = [t.note, left ? `${left} more rows are not shown` : ""].filter((x) => x).join("; ");
    note.hidden = !note.textContent;
    more.hidden = t.rows.length <= first;
    more.textContent = open ? `first ${first} of ${t.title}` : `all ${t.rows.length} of ${t.title}`;
    more.setAttribute("aria-expanded", String(open));
  };

  const show = (e) => {
    at("when").textContent = `${e.at}, ${e.length}; ${e.costs}`;
    figures(e.headline);
    bars(e.bars);
    table(at("cpu-table"), e.cpus);
    e.tables.forEach((t) => table(at("rest"), t));
    const found = e.found.map((f) => {
      const item = make("li");
      item.append(make("strong", f.severity, { class: f.tone }), ` ${f.title}`);
      if (f.evidence.length) item.append(make("br"), make("span", f.evidence.join("; "), { class: "missing" }));
      return item;
    });
    e.ended.forEach((text) => found.push(make("li", text)));
    if (!found.length) found.push(make("li", "The rules found nothing in this interval."));
    at("found").replaceChildren(...found);
    at("missing").hidden = !e.missing.length;
    at("lacks").replaceChildren(...e.missing.map((text) => make("li", text)));
  };

  let last;
  const pause = at("pause");
  pause.setAttribute("aria-pressed", "false");
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Continue" : "Pause";
    say(paused ? "Paused" : live, paused ? "warn" : "good");
    if (!paused && last) show(last);
  });

  const connect = () => {
    const events = new EventSource(`page${location.search}`);
    events.addEventListener("hello", (m) => {
      const hello = JSON.parse(m.data);
      ({ history, keep, state: live } = hello);
      const name = `netwright watch ${hello.host}`.trim();
      at("host").textContent = name;
      document.title = name;
      if (!paused) say(live, "good");
    });
    events.addEventListener("interval", (m) => {
      last = JSON.parse(m.data);
      history.push(last.headline);
      while (history.length > keep) history.shift();
      if (paused) return;
      say(live, "good");
      show(last);
    });
    events.addEventListener("end", () => {
      events.close();
      say("Ended: netwright does not watch any more", "bad");
    });
    events.addEventListener("error", () => {
      if (events.readyState === EventSource.CONNECTING) say("Connection lost; trying again", "bad");
      if (events.readyState !== EventSource.CLOSED) return;
      say("Refused; trying again", "bad");
      events.close();
      setTimeout(connect, 3000);
    });
  };
  connect();
})();
