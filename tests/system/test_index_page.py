"""Pages of folders, as common web servers write them."""

from __future__ import annotations

from hlotool.system.store_objects import links_below

URL = "http://host/dump/"


def test_python_and_nginx() -> None:
    page = (
        '<h1>Index</h1><a href="../">../</a><a href="a%20b.txt">a b.txt</a> 12-Oct <a href="host/">host/</a>'
    )
    assert links_below(page, URL) == [f"{URL}a%20b.txt", f"{URL}host/"]


def test_apache_sorts_by_links() -> None:
    page = (
        '<a href="?C=N;O=D">Name</a><A HREF="/">Parent</A><a href="/dump/x.hlo">x</a><a href="x.hlo#a">x</a>'
    )
    assert links_below(page, URL) == [f"{URL}x.hlo"]


def test_links_to_elsewhere_are_not_followed() -> None:
    links = (
        "//evil/x.hlo",
        "https://evil/x.hlo",
        "../other/x.hlo",
        "javascript:x",
        "deep/er/x.hlo",
        ".git/",
        "",
    )
    assert links_below("".join(f'<a href="{link}">x</a>' for link in links), URL) == []
    assert links_below('<a href=".hidden.hlo">x</a>', URL) == [f"{URL}.hidden.hlo"]
