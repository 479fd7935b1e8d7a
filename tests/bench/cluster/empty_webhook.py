"""A webhook that allows everything: what a call costs before anything is decided.

python -m tests.bench.cluster.empty_webhook PORT CERT KEY
"""

from __future__ import annotations

import ssl
import sys

import orjson
from aiohttp import web


async def answer(call: web.Request) -> web.Response:
    """Yes."""
    uid = orjson.loads(await call.read())["request"]["uid"]
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    body = orjson.dumps({**review, "response": {"uid": uid, "allowed": True}})
    return web.Response(body=body, content_type="application/json")


def main(port: str, cert: str, key: str) -> None:
    """Serve until the process is ended."""
    app = web.Application()
    app.router.add_post("/mutate", answer)
    app.router.add_post("/validate", answer)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    web.run_app(app, host="127.0.0.1", port=int(port), ssl_context=context, print=None)


if __name__ == "__main__":
    main(*sys.argv[1:])
