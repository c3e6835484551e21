"""The live page in a real browser: page.py CHROMIUM URL TOKEN_URL TOKEN FOLDER MANY_URL, that of
a pool of 64 threads, and the URL of a page with bridges if there are any. It says "block" and "open" on its standard
output when a handler is to block, and to go on, "end" when the endpoint of MANY_URL is to end; or, to make the picture of the README: page.py CHROMIUM URL FILE."""

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

#: What no healthy run comes near, in milliseconds.
PATIENCE = 240_000


def opened(
    browser: Browser,
    url: str,
    width: int,
    height: int,
    scheme: str,
    headers: Any = None,
) -> tuple[Page, list[str]]:
    """A page, and what has gone wrong in it."""
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": height},
        extra_http_headers=headers,
    )
    context.set_default_timeout(PATIENCE)
    page, wrong = context.new_page(), []
    page.on(
        "console",
        lambda message: wrong.append(message.text) if message.type == "error" else None,
    )
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith(url) else wrong.append(request.url),
    )
    page.goto(url)
    return page, wrong


def until(page: Page, expression: str, arg: Any = None) -> None:
    """Asks again and again from here: the page's policy allows no script of playwright's to wait there."""
    for _ in range(PATIENCE // 50):
        if page.evaluate(expression, arg):
            return
        page.wait_for_timeout(50)
    raise TimeoutError(expression)


def say(what: str) -> None:
    print(what, flush=True)


def has_no_overflow(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def works(browser: Browser, url: str, folder: Path) -> None:
    page, wrong = opened(browser, url, 1200, 900, "light")
    page.wait_for_selector(".thread[data-state=leading]")
    assert page.inner_text("#health") == "ready", page.inner_text("#health")
    assert not page.is_visible("#bridges")

    assert " of 6 " in page.inner_text("#summary"), page.inner_text("#summary")
    assert page.title() == "ready · watched · paceline", page.title()

    # A thread that steps in is counted; a subscription that lags is named, with its room; what runs by name.
    until(
        page,
        "[...document.querySelectorAll('.thread')].some((it) => it.dataset.rescues > 0)",
    )
    page.wait_for_selector("#waiting li[data-name='orders.late']")
    until(page, "document.querySelector('#card-requests b').textContent !== '0'")

    until(page, "document.querySelector('#card-rescues b').textContent !== '0'")
    until(
        page,
        "/ of 100, the oldest for .* s, .* lost so far/.test(document.querySelector('#waiting').innerText)",
    )
    tables_are_sorted(page)
    page.wait_for_selector("#curves .curve canvas")

    # Nothing of a name becomes markup, and none turns what stands beside it.
    until(page, "document.querySelector('#waiting').innerText.includes('\ufffd239.late')")
    assert page.query_selector("bdi") and "\u202e" not in page.inner_text("body")
    hostile = page.wait_for_selector("#waiting li[data-name*='onerror']")
    assert "<img" in hostile.inner_text() and page.query_selector("#waiting img") is None

    say("block")
    page.wait_for_selector(".thread[data-state=blocked]")
    name = page.wait_for_selector("#blocked li[data-name]").get_attribute("data-name")
    assert "holds_its_thread" in name, name
    until(page, "document.querySelector('#reasons').textContent.includes('blocked')")
    assert page.inner_text("#health") == "degraded", page.inner_text("#health")
    assert "1 of 6 blocked, by " in page.inner_text("#summary"), page.inner_text("#summary")
    assert page.title().startswith("degraded"), page.title()
    # What is blocked comes first.
    assert page.get_attribute(".thread", "data-state") == "blocked"
    # A screen reader says it once, though the seconds in its reasons go on.
    page.evaluate(
        "window.said = 0; new MutationObserver(() => window.said++)"
        ".observe(document.querySelector('#health'), { childList: true })"
    )
    before = page.inner_text("#reasons")
    until(
        page,
        "(before) => document.querySelector('#reasons').innerText !== before",
        arg=before,
    )
    assert page.evaluate("window.said") == 0
    page.screenshot(path=folder / "light.png", full_page=True)
    say("open")
    page.wait_for_selector(".thread[data-state=blocked]", state="detached")

    # By keyboard: the pause, then the first strip, and a second before.
    page.focus("#pause")
    page.keyboard.press("Enter")
    assert page.get_attribute("#pause", "aria-pressed") == "true"
    # What is of the past is grey, and says so.
    assert "last seen " in page.inner_text("#seen"), page.inner_text("#seen")
    assert float(page.evaluate("getComputedStyle(document.querySelector('main')).opacity")) < 1
    shown = page.inner_text("#threads")
    page.wait_for_timeout(2500)
    assert page.inner_text("#threads") == shown, "it goes on, though it was paused"
    page.keyboard.press("Tab")
    assert "Thread 0, 0 s ago" in page.inner_text("#detail"), page.inner_text("#detail")
    page.keyboard.press("ArrowLeft")
    assert "Thread 0, 1 s ago" in page.inner_text("#detail"), page.inner_text("#detail")
    assert page.get_attribute(".thread canvas", "aria-label").startswith("thread 0: ")
    page.click("#pause")
    page.hover(".thread canvas")
    assert "rescues" in page.inner_text("#detail")
    # What is in a trace is said.
    page.click("nav a[download]")
    until(page, "document.querySelector('#trace-note').textContent === 'recording'")
    until(page, "document.querySelector('#trace-note').textContent.startsWith('the trace has all of ')")
    assert not wrong, wrong

    phone, wrong = opened(browser, url, 390, 844, "dark")
    phone.wait_for_selector(".thread[data-state=leading]")
    assert has_no_overflow(phone)
    phone.screenshot(path=folder / "dark.png", full_page=True)
    assert not wrong, wrong


def tables_are_sorted(page: Page) -> None:
    first = "#table-subscriptions tbody tr:first-child"
    page.wait_for_selector(first)
    page.click("#table-subscriptions th:nth-child(2) button")
    assert page.get_attribute("#table-subscriptions th:nth-child(2)", "aria-sort") == "ascending"
    page.click("#table-subscriptions th:first-child button")
    assert page.get_attribute("#table-subscriptions th:first-child", "aria-sort") == "ascending"
    names = page.eval_on_selector_all(
        "#table-subscriptions tbody tr", "(all) => all.map((it) => it.dataset.name)"
    )
    assert names == sorted(names) and len(names) == 3, names
    assert page.query_selector("#table-connections tbody tr")


def folds_what_is_free(browser: Browser, url: str) -> None:
    page, wrong = opened(browser, url, 1200, 900, "dark")
    until(page, "document.querySelectorAll('.thread').length === 64")
    assert len(page.query_selector_all("#threads .thread")) == 8
    assert page.inner_text("#others summary").startswith("56 more threads: "), page.inner_text(
        "#others summary"
    )
    box = page.query_selector("#others summary").bounding_box()
    assert box["y"] < 600, box
    # The figures of a page whose feed has gone are grey.
    legend = "document.querySelector('#legend canvas').toDataURL()"
    dark = page.evaluate(legend)
    page.emulate_media(color_scheme="light")
    until(page, f"(dark) => {legend} !== dark", arg=dark)
    say("end")
    page.wait_for_selector("body.stale")
    assert "last seen " in page.inner_text("#seen"), page.inner_text("#seen")
    assert all("ERR_" in each for each in wrong), wrong


def refuses_what_a_proxy_has_passed_on(browser: Browser, url: str) -> None:
    page, wrong = opened(browser, url, 800, 600, "light", {"X-Forwarded-For": "192.0.2.1"})
    until(
        page,
        "document.querySelector('#health').textContent.includes('a proxy has passed on')",
    )
    assert page.query_selector(".thread") is None
    assert all("403" in each for each in wrong), wrong


def asks_for_its_token(browser: Browser, url: str, token: str) -> None:
    page, wrong = opened(browser, url, 800, 600, "light")
    page.wait_for_selector("#token-form:not([hidden])")
    assert page.query_selector(".thread") is None
    # One that cannot be sent, and the right one after it: there is one viewer then.
    page.fill("#token", "“no such token”")
    page.press("#token", "Enter")
    until(
        page,
        "document.querySelector('#health').textContent.startsWith('not connected')",
    )
    page.fill("#token", token[::-1])
    page.press("#token", "Enter")
    until(
        page,
        "document.querySelector('#health').textContent.includes('is not that of this endpoint')",
    )
    page.fill("#token", token)
    page.press("#token", "Enter")
    page.wait_for_selector(".thread")
    page.wait_for_timeout(2500)
    ask = "(token) => fetch('stats.json', { headers: { Authorization: `Bearer ${token}` } }).then((it) => it.json())"
    assert page.evaluate(ask, token)["viewers"] == 1
    # The first answer was 401, which browsers tell.
    assert all("401" in each for each in wrong), wrong


def shows_bridges(browser: Browser, url: str) -> None:
    page, wrong = opened(browser, url, 390, 844, "dark")
    away = page.wait_for_selector(".bridge[data-name='away'][data-state=away]")
    assert "not connected: nats://127.0.0.1:1: " in away.inner_text(), away.inner_text()
    assert "0 reconnects" in away.inner_text(), away.inner_text()
    assert "secret" not in page.content()
    rules = away.query_selector_all("li")
    told = [rule.inner_text() for rule in rules]
    assert told[0] == "export orders.> 2 waiting, 0 sent, 3 dropped", told
    assert told[1] == "import jobs by JOBS 0 lagging, 0 in flight, 0 published, 0 acknowledged", told
    # Nothing of a name becomes markup.
    assert "<img" in told[2] and page.query_selector("#bridges img") is None, told
    assert page.inner_text("#health") == "degraded", page.inner_text("#health")
    assert has_no_overflow(page)
    assert not wrong, wrong


def pictured(browser: Browser, url: str, file: str) -> None:
    page, _ = opened(browser, url, 1100, 1120, "light")
    page.wait_for_selector(".thread")
    page.wait_for_timeout(30_500)
    page.wait_for_selector(".thread[data-state=blocked]")
    page.screenshot(path=file)


def main(chromium: str, *rest: Any) -> None:
    with sync_playwright() as playwright:
        # As root there is no sandbox; what is looked at is ours.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if len(rest) == 2:
            pictured(browser, *rest)
        else:
            url, token_url, token, folder, many_url, *bridged = rest
            works(browser, url, Path(folder))
            folds_what_is_free(browser, many_url)
            refuses_what_a_proxy_has_passed_on(browser, url)
            for bridge_url in bridged:
                shows_bridges(browser, bridge_url)
            asks_for_its_token(browser, token_url, token)
        browser.close()
    say("done")


main(*sys.argv[1:])
