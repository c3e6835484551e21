"""The live page in a real browser: page.py CHROMIUM URL TOKEN_URL TOKEN FOLDER, and the
URL of a page with bridges if there are any. It says "block" and "open" on its standard
output when a handler is to block, and to go on; or, to make the picture of the README: page.py CHROMIUM URL FILE."""

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

#: What no healthy run comes near, in milliseconds.
PATIENCE = 240_000


def opened(browser: Browser, url: str, width: int, height: int, scheme: str) -> tuple[Page, list[str]]:
    """A page, and what has gone wrong in it."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
    context.set_default_timeout(PATIENCE)
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request", lambda request: None if request.url.startswith(url) else wrong.append(request.url)
    )
    page.goto(url)
    return page, wrong


def say(what: str) -> None:
    print(what, flush=True)


def has_no_overflow(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def works(browser: Browser, url: str, folder: Path) -> None:
    page, wrong = opened(browser, url, 1200, 900, "light")
    page.wait_for_selector(".thread[data-state=leading]")
    assert page.inner_text("#health") == "ready", page.inner_text("#health")
    assert not page.is_visible("#bridges")

    # A rescue is a mark; a subscription that lags is named; what runs by name.
    page.wait_for_function(
        "[...document.querySelectorAll('.thread')].some((it) => it.dataset.rescues > 0)"
    )
    page.wait_for_selector("#waiting li[data-name='orders.late']")
    page.wait_for_function("document.querySelector('#card-requests b').textContent !== '0'")

    # Nothing of a name becomes markup.
    hostile = page.wait_for_selector("#waiting li[data-name*='onerror']")
    assert "<img" in hostile.inner_text() and page.query_selector("#waiting img") is None

    say("block")
    page.wait_for_selector(".thread[data-state=blocked]")
    name = page.wait_for_selector("#blocked li[data-name]").get_attribute("data-name")
    assert "holds_its_thread" in name, name
    page.wait_for_function("document.querySelector('#reasons').textContent.includes('blocked')")
    assert page.inner_text("#health") == "degraded", page.inner_text("#health")
    # A screen reader says it once, though the seconds in its reasons go on.
    page.evaluate(
        "window.said = 0; new MutationObserver(() => window.said++)"
        ".observe(document.querySelector('#health'), { childList: true })"
    )
    before = page.inner_text("#reasons")
    page.wait_for_function(
        "(before) => document.querySelector('#reasons').innerText !== before", arg=before
    )
    assert page.evaluate("window.said") == 0
    page.screenshot(path=folder / "light.png", full_page=True)
    say("open")
    page.wait_for_selector(".thread[data-state=blocked]", state="detached")

    # By keyboard: the pause, then the first strip, and a second before.
    page.focus("#pause")
    page.keyboard.press("Enter")
    assert page.get_attribute("#pause", "aria-pressed") == "true"
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
    assert not wrong, wrong

    phone, wrong = opened(browser, url, 390, 844, "dark")
    phone.wait_for_selector(".thread[data-state=leading]")
    assert has_no_overflow(phone)
    phone.screenshot(path=folder / "dark.png", full_page=True)
    assert not wrong, wrong


def asks_for_its_token(browser: Browser, url: str, token: str) -> None:
    page, wrong = opened(browser, url, 800, 600, "light")
    page.wait_for_selector("#token-form:not([hidden])")
    assert page.query_selector(".thread") is None
    # One that cannot be sent, and the right one after it: there is one viewer then.
    page.fill("#token", "“no such token”")
    page.press("#token", "Enter")
    page.wait_for_function("document.querySelector('#health').textContent.startsWith('not connected')")
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
    page, _ = opened(browser, url, 1100, 600, "light")
    page.wait_for_selector(".thread")
    page.wait_for_timeout(30_500)
    page.wait_for_selector(".thread[data-state=blocked]")
    page.screenshot(path=file, full_page=True)


def main(chromium: str, *rest: Any) -> None:
    with sync_playwright() as playwright:
        # As root there is no sandbox; what is looked at is ours.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if len(rest) == 2:
            pictured(browser, *rest)
        else:
            url, token_url, token, folder, *bridged = rest
            works(browser, url, Path(folder))
            for bridge_url in bridged:
                shows_bridges(browser, bridge_url)
            asks_for_its_token(browser, token_url, token)
        browser.close()
    say("done")


main(*sys.argv[1:])
