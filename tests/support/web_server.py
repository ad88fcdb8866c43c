"""A web server of a folder, as small as they come, which can be told to fail."""

from __future__ import annotations

import hashlib
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

#: What can go wrong with one request.
Fault = Callable[["Handler", bytes], None]


class WebServer:
    """Serves `root` until it is closed.

    Attributes:
        url: of the folder, without `/` at its end.
        requests: how often each method and path was asked for, such as `GET /a.txt`.
        faults: by path, what becomes of the next GETs of it; the last one for good.
        etags: answers have an ETag.
        dates: answers have a time of change.
        password: `user:password` that is asked for, if any.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.requests: Counter[str] = Counter()
        self.faults: dict[str, list[Fault | None]] = {}
        self.etags = self.dates = True
        self.password = ""
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.web = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, also what hangs."""
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fault(self, method: str, path: str) -> Fault | None:
        """Count a request; what is to become of it."""
        with self._lock:
            self.requests[f"{method} {path}"] += 1
            waiting = self.faults.get(path, [])
            if method != "GET" or not waiting:
                return None
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    def gets(self) -> list[str]:
        """Paths of files of which the content was asked for."""
        with self._lock:
            found = (request.split(" ", 1) for request in self.requests)
            return sorted(path for method, path in found if method == "GET" and not path.endswith("/"))


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    protocol_version = "HTTP/1.1"

    @property
    def web(self) -> WebServer:
        found: WebServer = self.server.web  # type: ignore[attr-defined]
        return found

    def do_HEAD(self) -> None:
        self._answer("HEAD")

    def do_GET(self) -> None:
        self._answer("GET")

    def log_message(self, format: str, *args: object) -> None:
        """Nothing to stderr."""

    def _answer(self, method: str) -> None:
        path = unquote(urlsplit(self.path).path)
        fault = self.web.fault(method, path)
        if self.web.password and not self._is_known():
            self.plain(401, b"who is it?", {"WWW-Authenticate": "Basic"})
            return
        target = self.web.root / path.lstrip("/")
        if target.is_dir() and not path.endswith("/"):
            self.plain(301, b"", {"Location": f"{quote(path)}/"})
        elif target.is_dir():
            self.plain(200, self._index(target), {"Content-Type": "text/html"}, method)
        elif not target.is_file():
            self.plain(404, b"no such file", {}, method)
        elif fault is not None:
            fault(self, target.read_bytes())
        else:
            self.plain(200, target.read_bytes(), self.headers_of(target), method)

    def _is_known(self) -> bool:
        from base64 import b64encode

        expected = f"Basic {b64encode(self.web.password.encode()).decode()}"
        return self.headers.get("Authorization") == expected

    def headers_of(self, file: Path) -> dict[str, str]:
        """What tells one version from another."""
        found = {}
        if self.web.etags:
            found["ETag"] = f'"{hashlib.md5(file.read_bytes()).hexdigest()}"'
        if self.web.dates:
            found["Last-Modified"] = formatdate(file.stat().st_mtime, usegmt=True)
        return found

    def plain(self, status: int, content: bytes, headers: dict[str, str], method: str = "GET") -> None:
        """A whole answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if method == "GET":
            self.wfile.write(content)

    @staticmethod
    def _index(folder: Path) -> bytes:
        names = sorted(f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir())
        links = "".join(f'<li><a href="{quote(name)}">{name}</a></li>' for name in names)
        return f'<html><a href="?C=N;O=D">Name</a><a href="../">Parent</a><ul>{links}</ul></html>'.encode()


def status(code: int) -> Fault:
    """An answer that says no."""

    def fault(handler: Handler, content: bytes) -> None:
        handler.plain(code, b"no", {"Retry-After": "0"})

    return fault


def reset(handler: Handler, content: bytes) -> None:
    """The connection breaks before the answer."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True
    handler.connection.close()


def short(handler: Handler, content: bytes) -> None:
    """The connection ends in the middle of what was promised."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2])
    handler.close_connection = True


def cut(handler: Handler, content: bytes) -> None:
    """Half of the content, as if that were all."""
    handler.plain(200, content[: len(content) // 2], {})


def silent(handler: Handler, content: bytes) -> None:
    """Half of the content, and then nothing."""
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2])
    handler.wfile.flush()
    handler.web.released.wait()
    handler.close_connection = True
