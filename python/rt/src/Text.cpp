//===- Text.cpp: tokenizers -----------------------------------------------===//
// Takes:    see Text.h. Text comes and goes as UTF-8 in bytes, tokens as lists of int.
// Gives:    `_rt.Text`.
// Keeps:    no state between calls: that of a stream goes in and out as bytes.
#include "Text.h"
#include "astra/text.h"

#include <cstring>
#include <new>

using namespace astra::python;

namespace {

struct TextObject {
  PyObject_HEAD std::vector<uint64_t> blob; ///< the tokenizer, at a multiple of 8
  astra_text *text;
};
const astra_text *textOf(PyObject *self) { return reinterpret_cast<TextObject *>(self)->text; }

PyObject *makeText(PyTypeObject *type, PyObject *args, PyObject *) {
  const char *bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#", &bytes, &size)) return nullptr;
  PyObject *self = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
  if (!self) return nullptr;
  auto *object = reinterpret_cast<TextObject *>(self);
  new (&object->blob) std::vector<uint64_t>(size_t(size) / 8 + 1);
  object->text = nullptr;
  std::memcpy(object->blob.data(), bytes, size_t(size));
  Diag diag;
  if (astra_status s = astra_text_init(&object->text, object->blob.data(), size_t(size), &diag)) {
    Py_DECREF(self);
    return raise(s, diag.text);
  }
  return self;
}

void freeText(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  auto *object = reinterpret_cast<TextObject *>(self);
  astra_text_free(&object->text);
  object->blob.~vector();
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/// What a function of text.h writes, in the room that it asks for. False with an exception.
template <typename T, typename Fn> bool written(std::vector<T> &out, Fn fn) {
  Diag diag;
  size_t size = 0;
  astra_status s = withoutGil([&] {
    astra_status first = fn(nullptr, size_t(0), &size, &diag);
    if (first != ASTRA_CAPACITY) return first;
    out.resize(size);
    return fn(out.data(), out.size(), &size, &diag);
  });
  if (s) raise(s, diag.text);
  return !s;
}

PyObject *listOf(const std::vector<int32_t> &tokens) {
  PyObject *list = PyList_New(Py_ssize_t(tokens.size()));
  for (size_t i = 0; list && i < tokens.size(); i++) {
    PyObject *number = PyLong_FromLong(tokens[i]);
    if (!number || PyList_SetItem(list, Py_ssize_t(i), number) < 0) Py_CLEAR(list);
  }
  return list;
}
PyObject *bytesOf(const std::vector<char> &text) {
  return PyBytes_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
}

/// A number of 32 bits; others are no token. False with an exception.
bool tokenOf(PyObject *object, int32_t &out) {
  int overflow = 0;
  long long v = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (v == -1 && PyErr_Occurred()) return false;
  out = overflow || v < 0 || v > INT32_MAX ? -1 : int32_t(v);
  return true;
}

/// `encode(utf8, flags)`
PyObject *encode(PyObject *self, PyObject *args) {
  const char *text;
  Py_ssize_t size;
  unsigned flags;
  std::vector<int32_t> tokens;
  if (!PyArg_ParseTuple(args, "y#I", &text, &size, &flags)) return nullptr;
  bool fine = written(tokens, [&](int32_t *to, size_t room, size_t *count, astra_diag *diag) {
    return astra_text_encode(textOf(self), text, size_t(size), flags, to, room, count, diag);
  });
  return fine ? listOf(tokens) : nullptr;
}

/// `decode(tokens, flags)`
PyObject *decode(PyObject *self, PyObject *args) {
  PyObject *list;
  unsigned flags;
  if (!PyArg_ParseTuple(args, "O!I", &PyList_Type, &list, &flags)) return nullptr;
  std::vector<int32_t> tokens(size_t(PyList_Size(list)));
  for (size_t i = 0; i < tokens.size(); i++) {
    PyObject *item = PyList_GetItem(list, Py_ssize_t(i));
    if (!item || !tokenOf(item, tokens[i])) return nullptr;
  }
  std::vector<char> text;
  bool fine = written(text, [&](char *to, size_t room, size_t *bytes, astra_diag *diag) {
    return astra_text_decode(textOf(self), tokens.data(), tokens.size(), flags, to, room, bytes, diag);
  });
  return fine ? bytesOf(text) : nullptr;
}

/// `stream(state, token or None, flags)` -> (utf8, state). The first state is b"", None ends it.
PyObject *stream(PyObject *self, PyObject *args) {
  const char *before;
  Py_ssize_t size;
  PyObject *object;
  unsigned flags;
  int32_t token = -1;
  astra_text_stream state = {};
  if (!PyArg_ParseTuple(args, "y#OI", &before, &size, &object, &flags)) return nullptr;
  if (object != Py_None && !tokenOf(object, token)) return nullptr;
  if (size == sizeof state) std::memcpy(&state, before, sizeof state);
  if (state.held > sizeof state.bytes) return raise(ASTRA_INVALID_ARGUMENT, "the state is none of a stream");
  std::vector<char> text;
  bool fine = written(text, [&](char *to, size_t room, size_t *bytes, astra_diag *diag) {
    return object == Py_None ? astra_text_stream_end(&state, to, room, bytes, diag)
                             : astra_text_stream_next(textOf(self), &state, token, flags, to, room, bytes, diag);
  });
  if (!fine) return nullptr;
  return Py_BuildValue("y#y#", text.empty() ? "" : text.data(), Py_ssize_t(text.size()),
                       reinterpret_cast<const char *>(&state), Py_ssize_t(sizeof state));
}

/// Roles and contents of a list of pairs of str. False with an exception.
bool messagesOf(PyObject *list, std::vector<std::string> &words) {
  for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
    PyObject *pair[2];
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "SS", &pair[0], &pair[1])) return false;
    for (PyObject *part : pair) {
      char *text;
      if (PyBytes_AsStringAndSize(part, &text, nullptr) < 0) return false; // with a zero byte in it: a ValueError
      words.emplace_back(text);
    }
  }
  return true;
}

/// `chat([(role, content), ...], flags, as_tokens)`
PyObject *chat(PyObject *self, PyObject *args) {
  PyObject *list;
  unsigned flags;
  int asTokens;
  std::vector<std::string> words;
  if (!PyArg_ParseTuple(args, "O!Ip", &PyList_Type, &list, &flags, &asTokens) || !messagesOf(list, words))
    return nullptr;
  std::vector<astra_text_message> messages;
  for (size_t i = 0; i < words.size(); i += 2) messages.push_back({words[i].c_str(), words[i + 1].c_str()});
  std::vector<int32_t> tokens;
  std::vector<char> text;
  if (asTokens) {
    bool fine = written(tokens, [&](int32_t *to, size_t room, size_t *count, astra_diag *diag) {
      return astra_text_chat_encode(textOf(self), messages.data(), messages.size(), flags, to, room, count, diag);
    });
    return fine ? listOf(tokens) : nullptr;
  }
  bool fine = written(text, [&](char *to, size_t room, size_t *bytes, astra_diag *diag) {
    return astra_text_chat(textOf(self), messages.data(), messages.size(), flags, to, room, bytes, diag);
  });
  return fine ? bytesOf(text) : nullptr;
}

/// `token(number)`: its bytes in the vocabulary.
PyObject *tokenBytes(PyObject *self, PyObject *number) {
  int32_t token;
  const char *bytes;
  size_t size;
  Diag diag;
  if (!tokenOf(number, token)) return nullptr;
  if (astra_status s = astra_text_token(textOf(self), token, &bytes, &size, &diag)) return raise(s, diag.text);
  return PyBytes_FromStringAndSize(bytes, Py_ssize_t(size));
}

/// `find(bytes)`: the token, or -1.
PyObject *find(PyObject *self, PyObject *args) {
  const char *bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#", &bytes, &size)) return nullptr;
  return PyLong_FromLong(astra_text_find(textOf(self), bytes, size_t(size)));
}

/// `role(number)`: the token with a role, or -1.
PyObject *role(PyObject *self, PyObject *number) {
  int32_t value;
  if (!tokenOf(number, value)) return nullptr;
  return PyLong_FromLong(astra_text_role_token(textOf(self), value));
}

PyObject *tokensOf(PyObject *self, void *) { return PyLong_FromLong(astra_text_tokens(textOf(self))); }
PyObject *formOf(PyObject *self, void *) { return Py_BuildValue("z", astra_text_chat_form(textOf(self))); }

PyMethodDef methods[] = {{"encode", encode, METH_VARARGS, "Tokens of a text."},
                         {"decode", decode, METH_VARARGS, "Text of tokens."},
                         {"stream", stream, METH_VARARGS, "Text of one token more."},
                         {"chat", chat, METH_VARARGS, "A conversation as text or tokens."},
                         {"token", tokenBytes, METH_O, "The bytes of a token."},
                         {"find", find, METH_VARARGS, "The token of some bytes, or -1."},
                         {"role", role, METH_O, "The token with a role, or -1."},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {{"tokens", tokensOf, nullptr, "How many tokens there are.", nullptr},
                            {"form", formOf, nullptr, "The name of the form of conversations, or None.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

} // namespace

bool astra::python::addText(PyObject *module) {
  PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(makeText)},
                         {Py_tp_dealloc, reinterpret_cast<void *>(freeText)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {Py_tp_doc, const_cast<char *>("A compiled tokenizer.")},
                         {0, nullptr}};
  PyType_Spec spec = {"astra_rt._rt.Text", int(sizeof(TextObject)), 0, Py_TPFLAGS_DEFAULT, slots};
  PyObject *type = PyType_FromSpec(&spec);
  return type && PyModule_AddObject(module, "Text", type) == 0;
}
