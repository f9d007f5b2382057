"""Metrics for whoever scrapes them, on the loopback interface only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from deepum.daemon.metrics import CONTENT_TYPE

_LOOPBACK = "127.0.0.1"
_HOSTS = (_LOOPBACK, "localhost")  # another name is that of a page that reaches us by its own
_SILENT_SECONDS = 5.0
_MOST_CLIENTS = 8


class MetricsServer:
    """Answers `GET /metrics` until `close`."""

    def __init__(self, port: int, page: Callable[[], str]) -> None:
        """port: 0 has the kernel choose. page: makes the answer, in a thread of its own. Raises
        OSError.
        """
        self._server = _Server((_LOOPBACK, port), _Handler)
        self._server.page = page
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Nobody is answered any more."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    page: Callable[[], str]

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.places = threading.BoundedSemaphore(_MOST_CLIENTS)
        super().__init__(address, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that left is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SILENT_SECONDS

    def handle(self) -> None:
        if self.server.places.acquire(blocking=False):
            try:
                super().handle()
            finally:
                self.server.places.release()

    def do_GET(self) -> None:
        if self.headers.get("Host", _LOOPBACK).rpartition(":")[0] not in ("", *_HOSTS):
            self.send_error(HTTPStatus.FORBIDDEN)
        elif self.path.partition("?")[0] != "/metrics":
            self.send_error(HTTPStatus.NOT_FOUND, "metrics are at /metrics")
        else:
            page = self.server.page().encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is said of requests."""
