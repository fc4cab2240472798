"""The report in a browser: quiet, offline, sortable by mouse and keyboard, readable on a phone, safe."""

from __future__ import annotations

import re

ENTER = "\ue007"
COLUMN = """
const table = document.querySelector("#suite-main figure.result table");
const body = [...table.tBodies].find((b) => b.rows[0].textContent.includes("Kvasir"));
return [...body.rows].slice(1).map((r) => r.cells[arguments[0]].textContent.trim());
"""
HEAD = 'return document.querySelectorAll("#suite-main figure.result thead tr.leaf th")[arguments[0]]'
MEAN = 2


def means(browser):
    values = browser.run(COLUMN, MEAN)
    return [float(re.match(r"[\d.]+", v)[0]) for v in values if v != "—"], values


def test_it_is_one_file_that_asks_for_nothing(report):
    text = report.read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
    assert "@import" not in text
    assert text.count("<script") == 1
    assert "default-src 'none'" in text
    assert "A report &lt;b&gt;&amp;amp;" in text
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'href="#([^"]+)"', text):
        assert target in ids


def test_it_loads_without_a_message_and_without_a_request(report, browser):
    browser.log()
    browser.open(report)
    assert browser.run("return document.readyState") == "complete"
    assert browser.log() == []
    assert browser.run('return performance.getEntriesByType("resource").length') == 0


def test_sorting_by_mouse_and_by_keyboard(report, browser):
    browser.open(report)
    as_written, shown = means(browser)
    assert len(as_written) == 3
    assert as_written != sorted(as_written, reverse=True)
    browser.run(HEAD + '.querySelector("button").click()', MEAN)
    assert browser.run(HEAD + '.getAttribute("aria-sort")', MEAN) == "descending"
    descending, values = means(browser)
    assert descending == sorted(as_written, reverse=True)
    assert values[3:] == ["—"] * (len(shown) - 3)
    browser.run(HEAD + '.querySelector("button").focus()', MEAN)
    browser.press(ENTER)
    assert browser.run(HEAD + '.getAttribute("aria-sort")', MEAN) == "ascending"
    assert means(browser)[0] == sorted(as_written)
    browser.run(HEAD + '.querySelector("button").click()', 0)
    names = browser.run(COLUMN, 0)
    assert names == sorted(names, key=str.lower)
    assert browser.run(HEAD + '.getAttribute("aria-sort")', MEAN) is None


def test_every_picture_shows(report, browser):
    browser.open(report)
    browser.run('for (const d of document.querySelectorAll("details")) d.open = true')
    browser.run('for (const i of document.images) i.loading = "eager"')
    widths = browser.run("return [...document.images].map((i) => i.complete ? i.naturalWidth : 0)")
    assert widths == [40]
    boxes = browser.run(
        'return [...document.querySelectorAll(".plot svg")].map((s) => [s.getBoundingClientRect().width, '
        's.querySelectorAll("text").length])'
    )
    assert len(boxes) >= 2
    assert all(width > 100 and count > 3 for width, count in boxes)


def test_a_phone_needs_no_sideways_scrolling_of_the_page(report, browser):
    try:
        browser.size(360, 740)
        browser.open(report)
        browser.run('for (const d of document.querySelectorAll("details")) d.open = true')
        assert browser.run("return innerWidth") == 360
        assert browser.run("return document.documentElement.scrollWidth") <= 360
        # Wide tables scroll inside their own, focusable, region.
        assert browser.run('return document.querySelector("#suite-main .scroll").scrollWidth') > 360
        assert browser.run('return document.querySelector("#suite-main .scroll").tabIndex') == 0
    finally:
        browser.unsize()


def test_a_table_says_that_it_scrolls_only_where_it_does(report, browser):
    frames = """
    return [...document.querySelectorAll(".scroll")].filter((f) => f.checkVisibility()).map((f) => {
        const before = f.previousElementSibling;
        const hinted = before !== null && before.classList.contains("hint") && before.checkVisibility();
        return [f.scrollWidth > f.clientWidth + 1, hinted];
    })"""
    try:
        browser.size(390, 844)
        browser.open(report)
        narrow = browser.run(frames)
        assert any(wide for wide, _ in narrow)
        assert all(wide == hinted for wide, hinted in narrow)
        browser.run('for (const d of document.querySelectorAll("details.card")) d.open = true')
        for _ in range(50):  # a part that is unfolded tells a little later
            unfolded = browser.run(frames)
            if all(wide == hinted for wide, hinted in unfolded):
                break
        assert len(unfolded) > len(narrow)
        assert all(wide == hinted for wide, hinted in unfolded)
        browser.size(3000, 1000)
        browser.open(report)
        assert not any(hinted for _, hinted in browser.run(frames))
    finally:
        browser.unsize()


def test_dark_follows_the_reader_and_the_button(report, browser):
    ground = "return getComputedStyle(document.body).backgroundColor"
    try:
        browser.prefer("light")
        browser.open(report)
        light = browser.run(ground)
        browser.prefer("dark")
        dark = browser.run(ground)
        assert light != dark
        text = 'return getComputedStyle(document.querySelector(".plot svg text")).fill'
        assert browser.run(text) == browser.run("return getComputedStyle(document.body).color")
        # ... on the page's ground: a white sheet behind light letters could not be read.
        sheets = browser.run(
            'return [...document.querySelectorAll(".plot svg")].map((s) => getComputedStyle(s.querySelector("g path")))'
            ".map((style) => [style.fill, style.opacity])"
        )
        assert sheets
        assert all(fill == "none" or opacity == "0" for fill, opacity in sheets)
        browser.run('document.getElementById("theme").click()')
        assert browser.run(ground) == light
    finally:
        browser.prefer("light")


def test_cards_open_by_link_and_filter_by_words(report, browser):
    browser.open(report)
    link = browser.run('return document.querySelector("#suite-main details a").getAttribute("href")')
    browser.run("location.hash = arguments[0]", link)
    opened = "return document.getElementById(arguments[0]).open"
    for _ in range(50):
        if browser.run(opened, link[1:]):
            break
    assert browser.run(opened, link[1:])
    visible = 'return [...document.querySelectorAll("details.card")].filter((c) => !c.hidden).length'
    everything = browser.run(visible)
    browser.run('document.getElementById("filter").focus()')
    browser.press(*"orca 1")
    assert 0 < browser.run(visible) < everything


def test_names_that_look_like_markup_stay_text(report, browser):
    browser.log()
    browser.open(report)
    assert browser.run("return document.title") == "A report <b>&amp;"
    assert browser.run('return document.querySelectorAll("img[src=x]").length') == 0
    assert "onerror" in browser.run('return document.querySelector("#problems").textContent')
    assert browser.log() == []
