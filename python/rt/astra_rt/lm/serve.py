"""Serves a language model over HTTP in the form of OpenAI's API, with the runtime alone.

    pip install fastapi uvicorn
    python -m astra_rt.lm.serve model.astra --port 8000
    curl -s localhost:8000/v1/chat/completions -H 'content-type: application/json' \\
         -d '{"model": "model", "messages": [{"role": "user", "content": "Hello!"}]}'

Takes:    POST /v1/chat/completions, POST /v1/completions, GET /v1/models; with "stream": true, events as they arise.
Gives:    replies with usage; errors are {"error": {"message": sentence, ...}}.
Keeps:    a reply is a function of its request: it does not depend on who else asks, on threads or on the CPU. As many replies as
          the bundle has sequences (astra-compile --batch) are made at once; they join and leave between tokens.
Does not: authenticate, encrypt, call tools, or take images. A field that it does not have is refused, unless it asks for nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import time
from pathlib import Path
from typing import Any, AsyncIterator, Mapping

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from .._errors import ArgumentError, BusyError, Error
from ._batching import Batch, Job
from ._model import LanguageModel, Prompt, Reply, load

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed")
FIELDS = {"model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "user", *SAMPLING}
NOTHING: dict[str, Any] = {"n": 1, "stop": [], "logprobs": False, "frequency_penalty": 0, "presence_penalty": 0, "echo": False,
                           "best_of": 1, "suffix": "", "logit_bias": {}, "tools": []}  # fmt: skip
MOST_BODY = 16 << 20


class Bad(Exception):
    """What is answered instead, with its status."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def refuse(status: int, sentence: str) -> Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": sentence, "type": kind, "param": None, "code": None}}, status)


async def body_of(request: Request, own: str) -> dict[str, Any]:
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MOST_BODY:
            raise Bad(413, f"the body has more than {MOST_BODY} bytes")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Bad(400, f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise Bad(400, "the body is no object of JSON")
    for name, value in body.items():
        if name in FIELDS or name == own or value is None or (name in NOTHING and value in (NOTHING[name], None)):
            continue
        raise Bad(400, f"'{name}' is not supported" + (", but as " + json.dumps(NOTHING[name]) if name in NOTHING else ""))
    return body


def messages_of(value: Any) -> list[dict[str, str]]:
    """Contents are texts, or lists of parts that are texts."""
    if not isinstance(value, list) or not value:
        raise Bad(400, "'messages' must be a list of messages")
    out = []
    for message in value:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list) and all(isinstance(p, dict) and p.get("type") == "text" for p in content):
            content = "".join(str(p.get("text", "")) for p in content)
        if not isinstance(content, str) or not isinstance(message.get("role"), str):
            raise Bad(400, "a message has a 'role' and a 'content', which are texts")
        out.append({"role": message["role"], "content": content})
    return out


def prompt_of(value: Any) -> Prompt:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], (str, list)):
        value = value[0]
    tokens = isinstance(value, list) and all(isinstance(t, int) and not isinstance(t, bool) for t in value)
    if not isinstance(value, str) and not tokens:
        raise Bad(400, "'prompt' must be one text, or one list of tokens")
    return value  # type: ignore[no-any-return]


def reply_of(model: LanguageModel, body: Mapping[str, Any], prompt: Prompt) -> Reply:
    most = body.get("max_completion_tokens") or body.get("max_tokens")
    sampling = {name: body[name] for name in SAMPLING if body.get(name) is not None}
    try:
        return model.reply(prompt, most, **sampling)
    except (ArgumentError, Error) as error:
        raise Bad(400, str(error)) from None


class Answers:
    """The pieces of one reply as they come from the batch's thread."""

    def __init__(self, batch: Batch, reply: Reply) -> None:
        self.queue: asyncio.Queue[tuple[str, Exception | None]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        self.job = Job(reply, lambda piece, error: loop.call_soon_threadsafe(self.queue.put_nowait, (piece, error)))
        try:
            batch.submit(self.job)
        except BusyError as error:
            raise Bad(503, str(error)) from None

    async def pieces(self) -> AsyncIterator[tuple[str, bool]]:
        """Each piece, and whether it is the last one."""
        count, reply = 0, self.job.reply
        try:
            while True:
                piece, error = await self.queue.get()
                if error:
                    raise Bad(500, str(error))
                count += 1
                last = bool(reply.finish) and count == len(reply.pieces)
                yield piece, last
                if last:
                    return
        finally:
            self.job.cancelled = True  # for one whom nobody listens to any more


KINDS: dict[str, dict[str, Any]] = {
    "chat": {"object": "chat.completion", "stream": "chat.completion.chunk", "id": "chatcmpl",
             "whole": lambda text: {"message": {"role": "assistant", "content": text}},
             "piece": lambda text, first: {"delta": {**({"role": "assistant"} if first else {}), "content": text}},
             "end": {"delta": {}}},
    "text": {"object": "text_completion", "stream": "text_completion", "id": "cmpl", "whole": lambda text: {"text": text},
             "piece": lambda text, first: {"text": text}, "end": {"text": ""}},
}  # fmt: skip


def create(model: LanguageModel, name: str, room: int = 256) -> FastAPI:
    """The application. `room`: how many requests may wait."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.batch, app.state.count = Batch(model, room), 0
        yield
        await asyncio.get_running_loop().run_in_executor(None, app.state.batch.close)

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "astra"}]}

    def usage(reply: Reply) -> dict[str, int]:
        prompt, made = len(reply.prompt), len(reply.tokens)
        return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}

    def finish(reply: Reply) -> str:
        return "stop" if reply.finish == "stop" else "length"

    async def answer(kind: str, body: dict[str, Any], prompt: Prompt) -> Response:
        wanted = body.get("model", name)
        if wanted != name:
            raise Bad(404, f"there is no model '{wanted}'; the model is '{name}'")
        answers = Answers(app.state.batch, reply_of(model, body, prompt))
        k, reply = KINDS[kind], answers.job.reply
        app.state.count += 1
        head = {"id": f"{k['id']}-{app.state.count}", "created": int(time.time()), "model": name}
        if not body.get("stream"):
            text = "".join([piece async for piece, _ in answers.pieces()])
            choice = {"index": 0, **k["whole"](text), "logprobs": None, "finish_reason": finish(reply)}
            return JSONResponse({**head, "object": k["object"], "choices": [choice], "usage": usage(reply)})
        options = body.get("stream_options") or {}

        async def events() -> AsyncIterator[str]:
            def event(**more: Any) -> str:
                return f"data: {json.dumps({**head, 'object': k['stream'], **more})}\n\n"

            def choice(part: dict[str, Any], reason: str | None) -> list[dict[str, Any]]:
                return [{"index": 0, **part, "logprobs": None, "finish_reason": reason}]

            first = True
            try:
                async for piece, _ in answers.pieces():
                    if piece or first:
                        yield event(choices=choice(k["piece"](piece, first), None))
                        first = False
                yield event(choices=choice(k["end"], finish(reply)))
                if isinstance(options, dict) and options.get("include_usage"):
                    yield event(choices=[], usage=usage(reply))
            except Bad as error:
                yield f"data: {json.dumps({'error': {'message': str(error), 'type': 'server_error'}})}\n\n"
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        body = await body_of(request, "messages")
        return await answer("chat", body, messages_of(body.get("messages")))

    @app.post("/v1/completions")
    async def completions(request: Request) -> Response:
        body = await body_of(request, "prompt")
        return await answer("text", body, prompt_of(body.get("prompt")))

    @app.exception_handler(Bad)
    async def bad(_: Request, error: Bad) -> Response:
        return refuse(error.status, str(error))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        return refuse(error.status_code, f"{request.method} {request.url.path}: {error.detail}")

    return app


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m astra_rt.lm.serve", description="Serves a language model over HTTP.")
    parser.add_argument("model", help="a bundle of a language model; its sequences (astra-compile --batch) are answered at once")
    parser.add_argument("--name", help="of the model, for clients (that of the file)")
    parser.add_argument("--threads", type=int, default=1, help="that a step may use (1)")
    parser.add_argument("--max-queue", type=int, default=256, help="requests that may wait; more are refused with 503 (256)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    a = parser.parse_args()
    try:
        model = load(a.model, threads=a.threads)
    except Error as error:
        sys.exit(f"astra_rt.lm.serve: {a.model}: {error}")
    app = create(model, a.name or Path(a.model).stem, a.max_queue)
    uvicorn.run(app, host=a.host, port=a.port, log_level="warning", timeout_graceful_shutdown=30)


if __name__ == "__main__":
    main()
