"""Serves a model over HTTP: a bundle of Astra with its runtime alone, no compiler in the process.

    pip install fastapi 'uvicorn[standard]'
    python app.py digits.astra --port 8000
    curl -s localhost:8000/metadata
    curl -s localhost:8000/predict -H 'content-type: application/octet-stream' --data-binary @image.f32 -o scores.f32

Takes:    POST /predict with a body of one of formats.FORMATS; the answer has the same form, or that of Accept.
Gives:    outputs; GET /metadata says what goes in and comes out, GET /health whether it runs; errors are {"error": sentence}.
Keeps:    a client's bytes do not depend on who else asked: requests are run in batches, and Astra's bits do not depend on them.
Does not: authenticate, encrypt or bound how slowly somebody sends: a proxy in front does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any, AsyncIterator

import uvicorn
from batching import Batcher, Refused
from engines import ENGINES
from fastapi import FastAPI, Request, Response
from formats import FORMATS, Bad, check
from starlette.exceptions import HTTPException

SETTINGS = "ASTRA_SERVE"  # the options as JSON, for the processes that uvicorn starts


def engine_of(settings: dict[str, Any]) -> Any:
    return ENGINES[settings["engine"]](settings["model"], settings["entry"], settings["threads"], settings["max_batch"])


def media(header: str) -> str:
    return header.split(";")[0].strip().lower()


async def body_of(request: Request, limit: int) -> bytes:
    parts, size = [], int(request.headers.get("content-length", 0))
    too_large = Bad(413, f"the body has more than {limit} bytes")
    if size > limit:
        raise too_large
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise too_large
        parts.append(part)
    return b"".join(parts)


def axes(info: Any) -> list[Any]:
    return [low if low == high else [low, high] for low, high in zip(info.lower, info.upper)]


def create() -> FastAPI:
    """The application of one process: uvicorn calls it."""
    settings = json.loads(os.environ[SETTINGS])
    engine = engine_of(settings)
    limit = int(settings["max_body_mib"] * 1024 * 1024)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.batcher = Batcher(engine.run, engine.batch[1], settings["max_wait_ms"] / 1000, settings["max_queue"])
        yield
        await app.state.batcher.close()
        engine.close()

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/health")
    async def health() -> dict[str, Any]:
        batcher = app.state.batcher
        return {"status": "ok", "batches": batcher.batches, "rows": batcher.rows, "waiting": batcher.waiting}

    @app.get("/metadata")
    async def metadata() -> dict[str, Any]:
        def values(infos: Any) -> list[dict[str, Any]]:
            return [{"name": i.name, "dtype": i.dtype, "shape": axes(i)} for i in infos]

        return {**engine.about, "batch": engine.batch, "inputs": values(engine.inputs), "outputs": values(engine.outputs),
                "formats": list(FORMATS), "max_body_bytes": limit}  # fmt: skip

    @app.post("/predict")
    async def predict(request: Request) -> Response:
        sent = media(request.headers.get("content-type", ""))
        if sent not in FORMATS:
            raise Bad(415, f"the content type is '{sent}'; it must be one of {', '.join(FORMATS)}")
        wanted = next((a for a in map(media, request.headers.get("accept", "").split(",")) if a in FORMATS), sent)
        arrays = FORMATS[sent].read(await body_of(request, limit), engine.inputs)
        check(arrays, engine.inputs, engine.batch)
        try:
            outputs = await app.state.batcher.submit(arrays)
        except ValueError as error:  # what only the model can see: an equation between sizes
            raise Bad(422, str(error)) from None
        except Refused as error:
            raise Bad(503, str(error)) from None
        return Response(FORMATS[wanted].write(outputs, engine.outputs), media_type=wanted)

    @app.exception_handler(Bad)
    async def bad(_: Request, error: Bad) -> Response:
        return answer(error.status, str(error))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        return answer(error.status_code, f"{request.method} {request.url.path}: {error.detail}")

    return app


def answer(status: int, sentence: str) -> Response:
    return Response(json.dumps({"error": sentence}), status, media_type="application/json")


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves a model over HTTP.")
    parser.add_argument("model", help="a bundle; with --engine=onnxruntime an ONNX file")
    parser.add_argument("--engine", choices=ENGINES, default="astra")
    parser.add_argument("--entry", default="main", help="of a bundle (main)")
    parser.add_argument("--threads", type=int, default=1, help="that a batch may use (1)")
    parser.add_argument("--max-batch", type=int, default=0, help="rows of a batch (as many as the model takes)")
    parser.add_argument("--max-wait-ms", type=float, default=1, help="how long a request waits for others (1)")
    parser.add_argument("--max-queue", type=int, default=4096, help="rows that may wait; more are refused with 503 (4096)")
    parser.add_argument("--max-body-mib", type=float, default=16, help="of a request (16)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--workers", type=int, default=1, help="processes, each with batches of its own (1)")
    settings = vars(parser.parse_args())
    try:
        engine_of(settings).close()  # here, before processes start
    except Exception as error:
        sys.exit(f"app.py: {settings['model']}: {error}")
    os.environ[SETTINGS] = json.dumps(settings)
    uvicorn.run("app:create", factory=True, app_dir=str(Path(__file__).parent), host=settings["host"], port=settings["port"],
                workers=settings["workers"], log_level="warning", timeout_graceful_shutdown=30)  # fmt: skip


if __name__ == "__main__":
    main()
