"""libastra_text through ctypes, as a program in any language would call it.

Takes:    the path of libastra_text.so, and the compiled form of a tokenizer.
Gives:    Tokenizer: encode, decode, stream, chat; Refused with the status and the sentence.
Keeps:    the C ABI of include/astra/text.h alone.
Does not: know what tokens should be.
"""

import ctypes as c


class Diag(c.Structure):
    _fields_ = [("size", c.c_size_t), ("status", c.c_int32), ("text", c.c_char * 500)]


class Stream(c.Structure):
    _fields_ = [("begun", c.c_uint32), ("held", c.c_uint32), ("bytes", c.c_uint8 * 8)]


class Message(c.Structure):
    _fields_ = [("role", c.c_char_p), ("content", c.c_char_p)]


class Refused(Exception):
    """A status that is not ASTRA_OK."""


AROUND, SPECIAL, PLAIN, ANSWER = 1, 2, 1, 1
CAPACITY = 11


class Tokenizer:
    def __init__(self, library, blob):
        self.lib = c.CDLL(str(library))
        for name in "astra_text_init", "astra_text_encode", "astra_text_decode", "astra_text_chat", "astra_text_chat_encode":
            getattr(self.lib, name).restype = c.c_int32
        self.lib.astra_text_chat_form.restype = c.c_char_p
        self.memory = c.create_string_buffer(len(blob) + 16)
        begin = (c.addressof(self.memory) + 7) // 8 * 8
        c.memmove(begin, blob, len(blob))
        self.handle = c.c_void_p()
        self.check(lambda d: self.lib.astra_text_init(c.byref(self.handle), c.c_void_p(begin), c.c_size_t(len(blob)), d))

    def __del__(self):
        self.lib.astra_text_free(c.byref(self.handle))

    @staticmethod
    def check(call, allowed=()):
        diag = Diag(c.sizeof(Diag))
        status = call(c.byref(diag))
        if status and status not in allowed:
            raise Refused(status, diag.text.decode())
        return status

    def sized(self, call, element, guess):
        """What `call(out, capacity, size, diag)` gives, asked again where the first guess of its size was too small."""
        size = c.c_size_t()
        while True:
            out = (element * max(guess, 1))()
            if not self.check(lambda d: call(out, c.c_size_t(guess), c.byref(size), d), (CAPACITY,)):
                return out, size.value
            assert size.value > guess, "more room than needed was asked for"
            guess = size.value

    def encode(self, text, flags=SPECIAL):
        raw = text if isinstance(text, bytes) else text.encode()
        call = lambda *out: self.lib.astra_text_encode(self.handle, raw, c.c_size_t(len(raw)), flags, *out)  # noqa: E731
        out, count = self.sized(call, c.c_int32, len(raw) // 2)
        return out[:count]

    def decode(self, tokens, flags=0):
        array = (c.c_int32 * len(tokens))(*tokens)
        call = lambda *out: self.lib.astra_text_decode(self.handle, array, c.c_size_t(len(tokens)), flags, *out)  # noqa: E731
        out, count = self.sized(call, c.c_uint8, 4 * len(tokens))
        return bytes(out[:count]).decode()

    def stream(self, tokens, flags=0):
        """The texts of single tokens, and what is left at the end."""
        stream, size, out, parts = Stream(), c.c_size_t(), c.create_string_buffer(4096), []
        for token in tokens:
            self.check(lambda d: self.lib.astra_text_stream_next(self.handle, c.byref(stream), token, flags, out, c.c_size_t(4096), c.byref(size), d))
            parts.append(out.raw[: size.value].decode())
        self.check(lambda d: self.lib.astra_text_stream_end(c.byref(stream), out, c.c_size_t(4096), c.byref(size), d))
        return parts + [out.raw[: size.value].decode()]

    def chat(self, messages, answer=True, tokens=False):
        array = (Message * max(len(messages), 1))(*[Message(role.encode(), content.encode()) for role, content in messages])
        function = self.lib.astra_text_chat_encode if tokens else self.lib.astra_text_chat
        call = lambda *out: function(self.handle, array, c.c_size_t(len(messages)), ANSWER if answer else 0, *out)  # noqa: E731
        out, count = self.sized(call, c.c_int32 if tokens else c.c_uint8, 64)
        return out[:count] if tokens else bytes(out[:count]).decode()

    def token(self, token):
        """The bytes of a token as the vocabulary has them."""
        begin, size = c.POINTER(c.c_uint8)(), c.c_size_t()
        self.check(lambda d: self.lib.astra_text_token(self.handle, token, c.byref(begin), c.byref(size), d))
        return begin[: size.value]

    def role(self, role):
        return self.lib.astra_text_role_token(self.handle, role)

    def form(self):
        name = self.lib.astra_text_chat_form(self.handle)
        return name.decode() if name is not None else None
