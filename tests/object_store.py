"""A small S3 server on loopback for the tests: signed requests, conditional writes, listings, ranges, multipart uploads.

Objects are files below a folder, so that they outlive the server. `If-None-Match: *` is one `os.link`, which fails where the object is:
of two writers exactly one wins, as S3 promises. A key may be read-only. Run it alone: `python -m tests.object_store FOLDER PORT`.
"""

import hashlib
import hmac
import os
import sys
import time
import uuid
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

WRITER = ("test-writer-key-id", "test-writer-secret-0123456789")
READER = ("test-reader-key-id", "test-reader-secret-0123456789")
SECRETS = dict([WRITER, READER])


class Store(ThreadingHTTPServer):
    """The server; `requests` counts what it was asked, by method and access key."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.requests: dict[tuple[str, str], int] = {}
        super().__init__(("127.0.0.1", port), Handler)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def environment(self, key: tuple[str, str] = WRITER) -> dict[str, str]:
        """What a client needs in its environment."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": key[0],
            "AWS_SECRET_ACCESS_KEY": key[1],
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Store

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def do_GET(self) -> None:
        if self._admitted():
            self._list() if self.query.get("list-type") == "2" else self._get()

    def do_HEAD(self) -> None:
        if self._admitted():
            self._get()

    def do_PUT(self) -> None:
        if not self._admitted(writes=True):
            return
        if "partNumber" in self.query:
            (self._parts() / f"{int(self.query['partNumber']):06d}").write_bytes(self.body)
            return self._answer(200, headers={"ETag": _etag(self.body)})
        body = self.body
        if source := self.headers.get("x-amz-copy-source"):
            body = (self.server.folder / unquote(source).lstrip("/")).read_bytes()
        self._write(body)

    def do_POST(self) -> None:
        if not self._admitted(writes=True):
            return
        if "delete" in self.query:
            names = [item.text or "" for item in ElementTree.fromstring(self.body).iter() if item.tag.endswith("Key")]
            for name in names:
                (self.path_of(f"{self.bucket}/{name}")).unlink(missing_ok=True)
            deleted = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in names)
            return self._answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode())
        if "uploads" in self.query:
            self.query["uploadId"] = uuid.uuid4().hex
            self._parts().mkdir(parents=True)
            return self._answer(
                200,
                f"<InitiateMultipartUploadResult><UploadId>{self.query['uploadId']}</UploadId></InitiateMultipartUploadResult>".encode(),
            )
        self._write(b"".join(part.read_bytes() for part in sorted(self._parts().iterdir())), xml=True)

    def do_DELETE(self) -> None:
        if self._admitted(writes=True):
            self.file.unlink(missing_ok=True)
            self._answer(204)

    def _admitted(self, *, writes: bool = False) -> bool:
        """Read the request and check its signature; anything wrong is answered here."""
        raw, _, query = self.path.partition("?")
        self.query = dict(parse_qsl(query, keep_blank_values=True))
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.bucket, _, self.key = unquote(raw).lstrip("/").partition("/")
        self.file = self.path_of(f"{self.bucket}/{self.key}")
        access = self._signer(raw, query)
        count = self.server.requests
        count[self.command, access] = count.get((self.command, access), 0) + 1
        if not access:
            self._fault(403, "SignatureDoesNotMatch")
        elif writes and access != WRITER[0]:
            self._fault(403, "AccessDenied")
        else:
            return True
        return False

    def path_of(self, name: str) -> Path:
        path = (self.server.folder / name).resolve()
        assert path.is_relative_to(self.server.folder.resolve())
        return path

    def _signer(self, raw: str, query: str) -> str:
        """The access key that signed the request (AWS Signature Version 4); empty where the signature is wrong."""
        fields = dict(part.strip().partition("=")[::2] for part in self.headers.get("Authorization", "").partition(" ")[2].split(","))
        access, _, scope = fields.get("Credential", "").partition("/")
        secret, names = SECRETS.get(access), fields.get("SignedHeaders", "").split(";")
        if secret is None or scope.count("/") != 3:
            return ""
        pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(query, keep_blank_values=True))
        lines = "".join(f"{name}:{' '.join(self.headers.get(name, '').split())}\n" for name in names)
        payload = self.headers.get("x-amz-content-sha256", "")
        asked = "&".join(f"{name}={value}" for name, value in pairs)
        request = f"{self.command}\n{raw}\n{asked}\n{lines}\n{';'.join(names)}\n{payload}"
        text = f"AWS4-HMAC-SHA256\n{self.headers.get('x-amz-date')}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = f"AWS4{secret}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        right = hmac.digest(key, text.encode(), "sha256").hex() == fields.get("Signature")
        whole = payload == "UNSIGNED-PAYLOAD" or payload == hashlib.sha256(self.body).hexdigest()
        return access if right and whole else ""

    def _parts(self) -> Path:
        return self.server.folder / ".uploads" / self.query["uploadId"]

    def _write(self, body: bytes, *, xml: bool = False) -> None:
        """The object, complete at once; with `If-None-Match: *` only where there is none."""
        draft = self.server.folder / ".uploads" / uuid.uuid4().hex
        draft.parent.mkdir(exist_ok=True)
        draft.write_bytes(body)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        try:
            if self.headers.get("If-None-Match") == "*":
                os.link(draft, self.file)
                draft.unlink()
            else:
                draft.replace(self.file)
        except FileExistsError:
            return self._fault(412, "PreconditionFailed")
        answer = f"<CompleteMultipartUploadResult><ETag>{_etag(body)}</ETag></CompleteMultipartUploadResult>".encode() if xml else b""
        if "x-amz-copy-source" in self.headers:
            answer = f"<CopyObjectResult><ETag>{_etag(body)}</ETag></CopyObjectResult>".encode()
        self._answer(200, answer, {"ETag": _etag(body)})

    def _get(self) -> None:
        if not self.key or not self.file.is_file():
            return self._fault(404, "NoSuchKey")
        body = self.file.read_bytes()
        headers = {"ETag": _etag(body), "Last-Modified": formatdate(self.file.stat().st_mtime, usegmt=True), "Accept-Ranges": "bytes"}
        first, last, asked = 0, len(body) - 1, self.headers.get("Range", "")
        if asked:
            start, _, end = asked.removeprefix("bytes=").partition("-")
            first, last = (int(start), min(int(end or last), last)) if start else (max(0, len(body) - int(end)), last)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        self._answer(206 if asked else 200, body[first : last + 1], headers)

    def _list(self) -> None:
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        after = self.query.get("continuation-token") or self.query.get("start-after", "")
        root = self.server.folder / self.bucket
        names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        most, objects, common, token = int(self.query.get("max-keys", 1000)), [], {}, ""
        for name in names:
            if not name.startswith(prefix) or name <= after:
                continue
            if len(objects) + len(common) >= most:
                token = objects[-1] if objects else name
                break
            cut = name.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                common[name[: cut + 1]] = None
            else:
                objects.append(name)
        rows = "".join(_row(root / name, name) for name in objects if (root / name).exists())
        rows += "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in common)
        more = f"<NextContinuationToken>{escape(token)}</NextContinuationToken>" if token else ""
        cut_off = "true" if token else "false"
        count = f"<KeyCount>{len(objects) + len(common)}</KeyCount><IsTruncated>{cut_off}</IsTruncated>"
        self._answer(200, f"<ListBucketResult><Name>{self.bucket}</Name>{count}{more}{rows}</ListBucketResult>".encode())

    def _fault(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode())

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _row(path: Path, name: str) -> str:
    try:
        found = path.stat()
    except FileNotFoundError:
        return ""
    changed = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(found.st_mtime))
    facts = f"<LastModified>{changed}</LastModified><ETag>{found.st_mtime_ns}</ETag><Size>{found.st_size}</Size>"
    return f"<Contents><Key>{escape(name)}</Key>{facts}</Contents>"


def _etag(body: bytes) -> str:
    return f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'


if __name__ == "__main__":
    Store(Path(sys.argv[1]), int(sys.argv[2])).serve_forever()
