"""Serves a language model over HTTP in the form of OpenAI's API, with the runtime alone.

    pip install fastapi uvicorn
    python -m astra_rt.lm.serve model.astra --port 8000
    curl -s localhost:8000/v1/chat/completions -H 'content-type: application/json' \\
         -d '{"model": "model", "messages": [{"role": "user", "content": "Hello!"}]}'

Takes:    POST /v1/chat/completions, /v1/completions, /v1/embeddings, GET /v1/models; with "stream": true, events as they arise.
Gives:    replies with usage; errors are {"error": {"message": sentence, "type", "param", "code"}}.
Keeps:    a reply is a function of its request: it does not depend on who else asks, on threads or on the CPU. As many replies as
          the bundle has sequences (astra-compile --batch) are made at once; they join and leave between tokens. A client that goes
          gives its sequences back.
Does not: authenticate, encrypt, call tools, or take images. A field that it does not have is refused, unless it asks for nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import codecs
import contextlib
import json
import math
import socket
import sys
import time
from pathlib import Path
from typing import Any, AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, NoReturn, TypeVar

import numpy as np
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from .._errors import BusyError, Error
from ._batching import Batch, Job
from ._model import LanguageModel, Prompt, Reply, load, messages_of

T = TypeVar("T")
SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
COMMON = {"model", "stream", "stream_options", "max_tokens", "user", "n", "stop", "seed", "logprobs", *SAMPLING}
FIELDS = {"chat": {"messages", "max_completion_tokens", "top_logprobs", "response_format", *COMMON}, "text": {"prompt", *COMMON},
          "embedding": {"input", "model", "encoding_format", "dimensions", "user"}}  # fmt: skip
NOTHING: dict[str, Any] = {"frequency_penalty": 0, "presence_penalty": 0, "echo": False, "best_of": 1, "suffix": "", "logit_bias": {},
                           "tools": []}  # fmt: skip
MOST_BODY, MOST_REPLIES = 16 << 20, 64


class Bad(Exception):
    """What is answered instead: status, sentence, the field that it is about, and OpenAI's word for it."""

    def __init__(self, status: int, sentence: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(sentence)
        self.status, self.param, self.code = status, param, code

    def body(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        sentence, param = (None if s is None else s.encode("utf-8", "replace").decode() for s in (str(self), self.param))
        return {"error": {"message": sentence, "type": kind, "param": param, "code": self.code}}  # what a client named may be no text


def of_error(error: Error, param: str) -> Bad:
    return Bad(400, str(error), param, "context_length_exceeded" if error.status == "ASTRA_CAPACITY" else None)


async def body_of(request: Request, kind: str) -> dict[str, Any]:
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
        if name in FIELDS[kind] or value is None or (name in NOTHING and value == NOTHING[name]):
            continue
        raise Bad(400, f"'{name}' is not supported" + (", but as " + json.dumps(NOTHING[name]) if name in NOTHING else ""), name)
    return body


def whole(body: Mapping[str, Any], name: str, otherwise: int, least: int, most: int) -> int:
    value = body.get(name)
    if value is None:
        return otherwise
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Bad(400, f"'{name}' is {json.dumps(value)}; it must be a whole number from {least} to {most}", name)
    return value


def flag(body: Mapping[str, Any], name: str) -> bool:
    value = body.get(name)
    if not isinstance(value, (bool, type(None))):
        raise Bad(400, f"'{name}' must be true or false", name)
    return bool(value)


def chat_of(value: Any) -> Prompt:
    try:
        return messages_of(value)
    except Error as error:
        raise of_error(error, "messages") from None


def prompts_of(value: Any, name: str) -> list[Prompt]:
    """A text, a list of tokens, or a list of these."""

    def is_one(x: Any) -> bool:
        return isinstance(x, str) or (isinstance(x, list) and bool(x) and all(isinstance(t, int) and not isinstance(t, bool) for t in x))

    many = [value] if is_one(value) else value
    if not isinstance(many, list) or not many or not all(map(is_one, many)):
        raise Bad(400, f"'{name}' must be a text, a list of tokens, or a list of these", name)
    return many


def replies_of(model: LanguageModel, body: Mapping[str, Any], prompts: list[Prompt], kind: str) -> list[Reply]:
    """A reply for each choice. The choices of a prompt differ by their seeds: those behind the given one."""
    form = body.get("response_format")
    if form is not None and form != {"type": "text"}:
        asked = form.get("type") if isinstance(form, dict) else form
        raise Bad(400, f"'response_format' of the type {json.dumps(asked)} is not supported; text is", "response_format")
    limits = [name for name in ("max_tokens", "max_completion_tokens") if body.get(name) is not None]
    if len(limits) == 2 and body[limits[0]] != body[limits[1]]:
        raise Bad(400, "'max_tokens' and 'max_completion_tokens' differ; give one", "max_tokens")
    most = whole(body, limits[0], 0, 1, 2**31 - 1) if limits else None
    count, seed = whole(body, "n", 1, 1, MOST_REPLIES), whole(body, "seed", 0, 0, 2**32 - 1)
    if count * len(prompts) > MOST_REPLIES:
        raise Bad(400, f"{len(prompts)} prompts of {count} replies are asked for, at most {MOST_REPLIES} replies are made at once", "n")
    if kind == "text":
        top = whole(body, "logprobs", 0, 0, 20)
    else:
        top = whole(body, "top_logprobs", 0, 0, 20)
        if not flag(body, "logprobs") and top:
            raise Bad(400, "'top_logprobs' is for 'logprobs': true", "top_logprobs")
    stop = body.get("stop")
    if stop is not None and not isinstance(stop, str) and not (isinstance(stop, list) and len(stop) <= 16):
        raise Bad(400, "'stop' must be a text, or a list of at most 16 texts", "stop")
    sampling = {name: body[name] for name in SAMPLING if body.get(name) is not None}
    try:
        return [model.reply(prompt, most, stop or (), top, **sampling, seed=(seed + i) % 2**32) for prompt in prompts for i in range(count)]
    except Error as error:
        about = next((n for n in (*SAMPLING, "stop") if str(error).startswith(n + " is ")), "prompt" if kind == "text" else "messages")
        raise of_error(error, about) from None


class Answers:
    """What replies gain, as it comes from the batch's thread."""

    def __init__(self, batch: Batch, replies: list[Reply]) -> None:
        self.queue: asyncio.Queue[tuple[int, str, Exception | None]] = asyncio.Queue()
        self.loop, self.jobs = asyncio.get_running_loop(), [Job(r, self._teller(i)) for i, r in enumerate(replies)]
        try:
            for job in self.jobs:
                batch.submit(job)
        except BusyError as error:
            self.leave()
            raise Bad(503, str(error), None, "overloaded") from None

    def _teller(self, index: int) -> Any:
        def tell(piece: str, error: Exception | None) -> None:
            self.loop.call_soon_threadsafe(self.queue.put_nowait, (index, piece, error))

        return tell

    def leave(self) -> None:
        """Nobody listens any more: sequences become free before the next token."""
        for job in self.jobs:
            job.cancelled = True

    def stop(self, _: Any) -> None:
        """The client has gone: whoever waits for a piece gets this instead."""
        self.queue.put_nowait((0, "", Bad(499, "the client has gone")))

    async def pieces(self) -> AsyncGenerator[tuple[int, int, str, bool], None]:
        """Choice, how many pieces it has had, piece, whether it is its last one."""
        counts = [0] * len(self.jobs)
        left = len(self.jobs)
        try:
            while left:
                await asyncio.sleep(0)  # a queue that is not empty gives nobody else a turn
                index, piece, error = await self.queue.get()
                if error:
                    raise error if isinstance(error, Bad) else Bad(500, str(error))
                reply = self.jobs[index].reply
                counts[index] += 1
                last = bool(reply.finish) and counts[index] == len(reply.pieces)
                left -= last
                yield index, counts[index] - 1, piece, last
        finally:
            self.leave()


async def gone(request: Request) -> None:
    """Ends when the client has gone."""
    while not await request.is_disconnected():
        await asyncio.sleep(0.05)


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """What `work` gives; it is cancelled when the client goes."""
    task, watch = asyncio.ensure_future(work), asyncio.ensure_future(gone(request))
    try:
        await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Bad(499, "the client has gone")
        return task.result()
    finally:
        for each in (task, watch):
            each.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


class Form:
    """How one kind of request is answered."""

    def __init__(self, model: LanguageModel, kind: str, wants_logprobs: bool) -> None:
        self.model, self.kind, self.wants_logprobs = model, kind, wants_logprobs
        self._before: dict[int, tuple[Any, list[int]]] = {}  # of each reply: a decoder, how many tokens it has had, characters
        self.name, self.chunk, self.id = {"chat": ("chat.completion", "chat.completion.chunk", "chatcmpl"),
                                          "text": ("text_completion", "text_completion", "cmpl")}[kind]  # fmt: skip

    def whole(self, text: str) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": text}} if self.kind == "chat" else {"text": text}

    def piece(self, text: str, first: bool) -> dict[str, Any]:
        return {"delta": {**({"role": "assistant"} if first else {}), "content": text}} if self.kind == "chat" else {"text": text}

    def end(self) -> dict[str, Any]:
        return {"delta": {}} if self.kind == "chat" else {"text": ""}

    def _length(self, reply: Reply, end: int) -> int:
        """Characters of the first `end` tokens; `end` never falls."""
        decoder, counts = self._before.setdefault(id(reply), (codecs.getincrementaldecoder("utf-8")("replace"), [0, 0]))
        for token in reply.tokens[counts[0] : end]:
            counts[1] += len(decoder.decode(self.model.tokenizer.piece(token)))
        counts[0] = max(counts[0], end)
        return counts[1] + bool(decoder.getstate()[0])  # what is open yet stands as one

    def logprobs(self, reply: Reply, begin: int, end: int) -> dict[str, Any] | None:
        """Of the tokens begin to end."""
        if not self.wants_logprobs:
            return None
        end = min(end, len(reply.tokens))

        def entry(token: int, logprob: float) -> dict[str, Any]:
            data = self.model.tokenizer.piece(token)
            return {"token": data.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(data)}

        tops = [[entry(*pair) for pair in reply.tops[i]] if reply.top else [] for i in range(begin, end)]
        entries = [entry(reply.tokens[i], reply.logprobs[i]) for i in range(begin, end)]
        if self.kind == "chat":
            return {"content": [{**e, "top_logprobs": top} for e, top in zip(entries, tops)], "refusal": None}
        at, offsets = self._length(reply, begin), []
        for e in entries:
            offsets.append(at)
            at += len(e["token"])
        return {"tokens": [e["token"] for e in entries], "token_logprobs": [e["logprob"] for e in entries], "text_offset": offsets,
                "top_logprobs": [{e["token"]: e["logprob"] for e in top} for top in tops] if reply.top else None}  # fmt: skip


def usage(replies: list[Reply], count: int) -> dict[str, int]:
    prompt, made = sum(len(r.prompt) for r in replies[::count]), sum(len(r.tokens) for r in replies)
    return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}


def finish(reply: Reply) -> str:
    return "stop" if reply.finish == "stop" else "length"


def create(model: LanguageModel, name: str, room: int = 256) -> FastAPI:
    """The application. `room`: how many replies may wait."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.batch, app.state.count, app.state.embedding = Batch(model, room), 0, asyncio.Lock()
        yield
        await asyncio.get_running_loop().run_in_executor(None, app.state.batch.close)

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    about = {"id": name, "object": "model", "created": 0, "owned_by": "astra"}

    def require_model(wanted: Any) -> None:
        if wanted is not None and wanted != name:
            raise Bad(404, f"there is no model {json.dumps(wanted)}; the model is '{name}'", "model", "model_not_found")

    @app.get("/health")
    async def health() -> dict[str, Any]:
        return {"status": "ok", **app.state.batch.counts()}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [about]}

    @app.get("/v1/models/{wanted:path}")
    async def one_model(wanted: str) -> dict[str, Any]:
        require_model(wanted)
        return about

    async def answer(request: Request, kind: str, body: dict[str, Any], prompts: list[Prompt]) -> Response:
        require_model(body.get("model"))
        streams, options = flag(body, "stream"), body.get("stream_options") or {}
        if not isinstance(options, dict) or set(options) - {"include_usage", "include_obfuscation"} or (options and not streams):
            raise Bad(400, "'stream_options' has 'include_usage', and is for 'stream': true", "stream_options")
        with_usage = flag(options, "include_usage")
        replies = replies_of(model, body, prompts, kind)
        count = len(replies) // len(prompts)
        answers = Answers(app.state.batch, replies)
        form = Form(model, kind, flag(body, "logprobs") if kind == "chat" else body.get("logprobs") is not None)
        app.state.count += 1
        head = {"id": f"{form.id}-{app.state.count}", "created": int(time.time()), "model": name}
        if not streams:

            async def all_pieces() -> None:
                async for _ in answers.pieces():
                    pass

            await unless_gone(request, all_pieces())
            choices = [{"index": i, **form.whole("".join(r.pieces)), "logprobs": form.logprobs(r, 0, len(r.tokens)), "finish_reason": finish(r)}
                       for i, r in enumerate(replies)]  # fmt: skip
            return JSONResponse({**head, "object": form.name, "choices": choices, "usage": usage(replies, count)})

        async def events() -> AsyncIterator[str]:
            def event(index: int, part: dict[str, Any], logprobs: Any = None, reason: str | None = None, **more: Any) -> str:
                choice = {"index": index, **part, "logprobs": logprobs, "finish_reason": reason}
                return f"data: {json.dumps({**head, 'object': form.chunk, 'choices': [choice], **more})}\n\n"

            more = {"usage": None} if with_usage else {}
            begun = [False] * len(replies)
            watch = asyncio.ensure_future(gone(request))
            watch.add_done_callback(answers.stop)
            try:
                async with contextlib.aclosing(answers.pieces()) as pieces:
                    async for index, place, piece, last in pieces:
                        said = form.logprobs(replies[index], place, place + 1)
                        if piece or said or not begun[index]:
                            yield event(index, form.piece(piece, not begun[index]), said, **more)
                            begun[index] = True
                        if last:
                            yield event(index, form.end(), None, finish(replies[index]), **more)
                if with_usage:
                    yield f"data: {json.dumps({**head, 'object': form.chunk, 'choices': [], 'usage': usage(replies, count)})}\n\n"
            except Bad as error:
                if error.status == 499:
                    return
                yield f"data: {json.dumps(error.body())}\n\n"
            finally:
                watch.remove_done_callback(answers.stop)
                watch.cancel()
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        body = await body_of(request, "chat")
        return await answer(request, "chat", body, [chat_of(body.get("messages"))])

    @app.post("/v1/completions")
    async def completions(request: Request) -> Response:
        body = await body_of(request, "text")
        return await answer(request, "text", body, prompts_of(body.get("prompt"), "prompt"))

    @app.post("/v1/embeddings")
    async def embeddings(request: Request) -> Response:
        """The mean of a text's vectors, of length 1: the same bytes on every CPU."""
        body = await body_of(request, "embedding")
        require_model(body.get("model"))
        coding = body.get("encoding_format") or "float"
        if coding not in ("float", "base64"):
            raise Bad(400, "'encoding_format' must be \"float\" or \"base64\"", "encoding_format")
        prompts, data, used = prompts_of(body.get("input"), "input"), [], 0
        try:
            texts = [model.encode(p) for p in prompts]
            for i, tokens in enumerate(texts):
                async with app.state.embedding:  # one at a time: a session has memory of its own
                    vectors = await asyncio.get_running_loop().run_in_executor(None, model.embed, tokens)
                mean = np.add.reduce(vectors.astype(np.float64), axis=0)
                mean /= math.sqrt(math.fsum(float(x) * float(x) for x in mean)) or 1.0
                vector = mean.astype("<f4")
                if whole(body, "dimensions", len(vector), 1, 2**31 - 1) != len(vector):
                    raise Bad(400, f"the model's vectors have {len(vector)} dimensions", "dimensions")
                coded = vector.tolist() if coding == "float" else base64.b64encode(vector.tobytes()).decode()
                data.append({"object": "embedding", "index": i, "embedding": coded})
                used += len(tokens)
        except Error as error:
            raise of_error(error, "input") from None
        return JSONResponse({"object": "list", "model": name, "data": data, "usage": {"prompt_tokens": used, "total_tokens": used}})

    @app.exception_handler(Bad)
    async def bad(_: Request, error: Bad) -> Response:
        return JSONResponse(error.body(), error.status)

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        return JSONResponse(Bad(error.status_code, f"{request.method} {request.url.path}: {error.detail}").body(), error.status_code)

    return app


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m astra_rt.lm.serve", description="Serves a language model over HTTP.")

    def between(least: int, most: int) -> Callable[[str], int]:
        def read(text: str) -> int:
            value = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
            if not least <= value <= most:
                raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
            return value

        return read

    parser.add_argument("model", help="a bundle of a language model; its sequences (astra-compile --batch) are answered at once")
    parser.add_argument("--name", help="of the model, for clients (that of the file)")
    parser.add_argument("--threads", type=between(1, 1024), default=1, help="that a step may use (1)")
    parser.add_argument("--max-queue", type=between(1, 1 << 30), default=256, help="requests that may wait; more are refused with 503 (256)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=between(1, 65535), default=8000)
    a = parser.parse_args()
    try:
        model = load(a.model, threads=a.threads)
    except (Error, OSError) as error:
        stop(str(error) if str(a.model) in str(error) else f"{a.model}: {error}")
    listener = socket.socket(socket.AF_INET6 if ":" in a.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((a.host, a.port))
    except OSError as error:
        stop(f"{a.host}, port {a.port}: {error.strerror}")
    app = create(model, a.name or Path(a.model).stem, a.max_queue)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=30))
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])


def stop(sentence: str) -> NoReturn:
    print(f"astra_rt.lm.serve: {sentence}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
