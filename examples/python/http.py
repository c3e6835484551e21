"""A web server for a directory, and for one small JSON route: what examples/http does, in Python.

python examples/python/http.py --listen 127.0.0.1:8080 --directory .
curl -i http://127.0.0.1:8080/README.md
curl -i http://127.0.0.1:8080/api/hello/you

feature: http/routes
"""

from __future__ import annotations

import sys

# A script's own directory comes first, and this one has the name of a standard module.
sys.path[:] = sys.path[1:]

import argparse
import json
import mimetypes
import os
import re
import signal
import stat
import threading
from collections.abc import Iterator
from email.utils import formatdate, parsedate_to_datetime
from typing import Optional, Union
from urllib.parse import unquote_to_bytes

import paceline
from paceline import Http, Pool, Request, Response

#: Read at once.
READ = 64 << 10

#: What a Range header asks for: all (None), a part, or nothing that there is.
Part = Union[None, range]


class Files:
    """The files of a directory."""

    def __init__(self, root: str) -> None:
        self.root = os.fsencode(root)

    def get(self, request: Request) -> Response:
        """Answers a GET or HEAD."""
        path = self.find(request.path)
        if path is None:
            return not_found()
        try:
            # Without O_NONBLOCK, opening a pipe that nobody writes to would wait for somebody.
            file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0)
        except IsADirectoryError:
            return slash(request)
        except OSError:
            return slash(request) if os.path.isdir(path) else not_found()
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            return Found(path, file, status).answer(request)
        file.close()
        return slash(request) if stat.S_ISDIR(status.st_mode) else not_found()

    def find(self, path: str) -> Optional[bytes]:
        """The file that a path names, be it there or not. None: no path of this server."""
        *directories, last = path.encode("latin-1").split(b"/")[1:]
        segments = [unquote_to_bytes(each) for each in (*directories, last or b"index.html")]
        for segment in segments:
            if not segment or segment.startswith(b".") or b"/" in segment or b"\0" in segment:
                return None
        return b"/".join([self.root, *segments])


def not_found() -> Response:
    return Response("not found\n", 404)


def slash(request: Request) -> Response:
    """To the directory's path with a slash at its end."""
    if request.path.endswith("/"):
        return not_found()
    query = "" if request.query is None else f"?{request.query}"
    return Response(b"", 301, {"Location": f"{request.path}/{query}"})


class Found:
    """A file that is there."""

    def __init__(self, path: bytes, file: object, status: os.stat_result) -> None:
        self.file = file
        self.size = status.st_size
        self.modified = max(0, int(status.st_mtime))
        self.headers = {
            "Last-Modified": formatdate(self.modified, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        kind, _ = mimetypes.guess_type(os.fsdecode(path))
        kind = kind or "application/octet-stream"
        self.kind = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind

    def answer(self, request: Request) -> Response:
        headers = self.headers
        instead = self.unmet(request)
        if instead is not None:
            return Response(b"", instead, headers)
        part: Part = range(self.size)
        status = 200
        if request.method == "GET" and request.header("If-Range") in (None, headers["Last-Modified"]):
            wanted = part_of(request.header("Range") or "", self.size)
            if wanted is not None:
                if not wanted:
                    return Response(b"", 416, {**headers, "Content-Range": f"bytes */{self.size}"})
                part, status = wanted, 206
                headers["Content-Range"] = f"bytes {part[0]}-{part[-1]}/{self.size}"
        headers["Content-Type"] = self.kind
        if request.method == "HEAD":
            return Response(iter(()), status, headers, length=len(part))
        if len(part) <= READ:
            return Response(b"".join(self.pieces(part)), status, headers)
        return Response(self.pieces(part), status, headers, length=len(part))

    def unmet(self, request: Request) -> Optional[int]:
        """What the peer is told in the file's place since a condition is not met. They are looked at in the
        order of RFC 9110, 13.2.2. A file has no entity tag, so nothing but ``*`` matches it."""
        match, none = request.header("If-Match"), request.header("If-None-Match")
        since = date_of(request.header("If-Unmodified-Since"))
        if match is not None:
            if match != "*":
                return 412
        elif since is not None and self.modified > since:
            return 412
        if none is not None:
            return 304 if none == "*" else None
        since = date_of(request.header("If-Modified-Since"))
        return 304 if since is not None and self.modified <= since else None

    def pieces(self, part: range) -> Iterator[bytes]:
        """The bytes of a part; fails if the file has become shorter meanwhile."""
        with self.file as file:  # type: ignore[attr-defined]
            at = part.start
            while at < part.stop:
                piece = os.pread(file.fileno(), min(READ, part.stop - at), at)
                if not piece:
                    raise EOFError("the file has become shorter")
                at += len(piece)
                yield piece


def date_of(header: Optional[str]) -> Optional[float]:
    """None: it is not there, or no date."""
    try:
        return None if header is None else parsedate_to_datetime(header).timestamp()
    except (ValueError, TypeError):
        return None


def part_of(header: str, size: int) -> Part:
    """One range of bytes, cut at the end of the file; empty: none that there is. None: nonsense, or more
    than is served."""
    match = re.fullmatch(r"(?i:bytes)= *(\d*)-(\d*) *", header, re.ASCII)
    if match is None or match[1] == match[2] == "":
        return None
    first, last = match.groups()
    if not first:
        return range(size - min(int(last), size), size)
    if last and int(last) < int(first):
        return None
    return range(int(first), min(int(last) + 1, size) if last else size)


def hello(request: Request) -> Response:
    value = {"hello": request.params["name"]}
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return Response(text, headers={"Content-Type": "application/json"})


def main() -> None:
    parser = argparse.ArgumentParser(description="A web server for a directory.")
    parser.add_argument("--listen", required=True, help="where: 127.0.0.1:8080, *:8080, unix:/run/http")
    parser.add_argument("--directory", default=".", help="what to serve")
    parser.add_argument("--threads", type=int, default=1, help="host threads")
    options = parser.parse_args()
    files = Files(options.directory)
    interrupted = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: interrupted.set())
    signal.signal(signal.SIGTERM, lambda *_: interrupted.set())
    with Pool(1) as pool:
        server = Http(pool, options.listen, threads=options.threads)
        server.get("/")(files.get)
        server.get("/{*path}")(files.get)
        server.get("/api/hello/{name}")(hello)
        with server:
            print("listening on", server.addresses[0], flush=True)
            interrupted.wait()
        books = server.stats()
        answered, refused = sum(books.answered.values()), sum(books.refused.values())
        aborted = sum(books.aborted.values())
        print(f"{books.begun} requests: {answered} answered, {refused} refused, {aborted} aborted")


if __name__ == "__main__":
    main()
