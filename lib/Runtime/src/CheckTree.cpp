//===- CheckTree.cpp: the manifest's parts are apart ----------------------===//
// Takes:    the bytes of the manifest section; the schema as flatc's type tables.
// Gives:    the promise that every table, vector and string is inside the section, aligned as its elements are, and
//           used once. So whoever follows the references visits no byte twice.
// Keeps:    time linear in the section, one bit of memory for each of its words. Recursion is as deep as the schema,
//           in which no table holds its own kind.
// Does not: look for required fields (the generated verifier does), or at what the numbers mean (CheckManifest.cpp).
#include "Checker.h"

using namespace astra::rt;
using flatbuffers::TypeCode;
using flatbuffers::TypeTable;

namespace {

template <typename T> T load(const uint8_t *at) {
  T value;
  memcpy(&value, at, sizeof(T));
  return value;
}

uint32_t scalarBytes(unsigned type) {
  switch (type) {
  case flatbuffers::ET_SHORT:
  case flatbuffers::ET_USHORT: return 2;
  case flatbuffers::ET_INT:
  case flatbuffers::ET_UINT:
  case flatbuffers::ET_FLOAT: return 4;
  case flatbuffers::ET_LONG:
  case flatbuffers::ET_ULONG:
  case flatbuffers::ET_DOUBLE: return 8;
  default: return 1;
  }
}

/// A struct's bytes, and the greatest alignment among its members.
void structLayout(const TypeTable &type, uint32_t &bytes, uint32_t &alignment) {
  bytes = uint32_t(type.values[type.num_elems]), alignment = 1;
  for (size_t i = 0; i < type.num_elems; i++)
    if (uint32_t size = scalarBytes(type.type_codes[i].base_type); size > alignment) alignment = size;
}

struct TreeChecker {
  const uint8_t *data;
  uint64_t bytes;
  astra_diag *diag;
  Array<uint64_t> used; ///< a bit for each 4 bytes: parts begin at multiples of 4

  Status misplaced(uint64_t at) {
    return malformed(diag, "a part of the manifest at byte %llu is misaligned or not inside of it",
                     static_cast<unsigned long long>(at));
  }

  /// Bytes at .. at + count are of one part. `at` is a multiple of 4.
  Status claim(uint64_t at, uint64_t count) {
    if (at > bytes || count > bytes - at) return misplaced(at);
    for (uint64_t word = at / 4; word < (at + count + 3) / 4; word++) {
      uint64_t bit = uint64_t(1) << word % 64;
      if (used[word / 64] & bit)
        return malformed(diag, "two references of the manifest lead to byte %llu; its parts are a tree",
                         static_cast<unsigned long long>(word * 4));
      used[word / 64] |= bit;
    }
    return ASTRA_OK;
  }

  /// Where the reference at `from` leads; `from` is inside of a part.
  Status follow(uint64_t from, uint64_t &to) {
    to = from + load<uint32_t>(data + from);
    return to % 4 || to > bytes || bytes - to < 4 ? misplaced(to) : ASTRA_OK;
  }

  /// Of vectors, and of strings, whose elements are chars with one more behind them.
  Status vector(uint64_t at, uint32_t elementBytes, uint32_t alignment, bool isString = false) {
    uint64_t count = load<uint32_t>(data + at);
    if ((at + 4) % alignment) return misplaced(at);
    return claim(at, 4 + count * elementBytes + isString);
  }

  Status string(uint64_t from) {
    uint64_t at;
    if (Status s = follow(from, at)) return s;
    return vector(at, 1, 1, true);
  }

  Status table(uint64_t from, const TypeTable &type);
  Status repeated(uint64_t from, TypeCode code, const TypeTable &type, const uint8_t *kinds, uint32_t kindCount);
  Status ofUnion(uint64_t from, const TypeTable &type, uint8_t kind) {
    // What is of a kind that the schema does not have is not followed by anyone.
    if (kind >= type.num_elems || type.type_codes[kind].sequence_ref < 0) return ASTRA_OK;
    return table(from, *type.type_refs[type.type_codes[kind].sequence_ref]());
  }
};

/// A vector of anything, to which the reference at `from` leads. `kinds`: of a vector of unions, what its elements are.
Status TreeChecker::repeated(uint64_t from, TypeCode code, const TypeTable &type, const uint8_t *kinds,
                             uint32_t kindCount) {
  uint64_t at;
  if (Status s = follow(from, at)) return s;
  const TypeTable *element = code.base_type == flatbuffers::ET_SEQUENCE ? type.type_refs[code.sequence_ref]() : nullptr;
  uint32_t size = 4, alignment = 4;
  bool isReference = code.base_type == flatbuffers::ET_STRING || (element && element->st != flatbuffers::ST_STRUCT);
  if (!isReference) size = alignment = scalarBytes(code.base_type);
  if (element && !isReference) structLayout(*element, size, alignment);
  if (Status s = vector(at, size, alignment)) return s;
  uint32_t count = isReference ? load<uint32_t>(data + at) : 0;
  bool ofUnions = element && element->st == flatbuffers::ST_UNION;
  if (ofUnions && count != kindCount) return malformed(diag, "a program has not as many kinds as instructions");
  for (uint32_t i = 0; i < count; i++) {
    uint64_t place = at + 4 + uint64_t(i) * 4;
    Status s = !element ? string(place) : ofUnions ? ofUnion(place, *element, kinds[i]) : table(place, *element);
    if (s) return s;
  }
  return ASTRA_OK;
}

Status TreeChecker::table(uint64_t from, const TypeTable &type) {
  uint64_t at;
  if (Status s = follow(from, at)) return s;
  // Only descriptions of fields may be shared: tables of one shape have one.
  int64_t fields = int64_t(at) - load<int32_t>(data + at);
  if (fields < 0 || fields % 2 || uint64_t(fields) > bytes - 4) return misplaced(at);
  uint16_t fieldsBytes = load<uint16_t>(data + fields), tableBytes = load<uint16_t>(data + fields + 2);
  if (fieldsBytes < 4 || fieldsBytes % 2 || fieldsBytes > bytes - uint64_t(fields) || tableBytes < 4)
    return misplaced(at);
  if (Status s = claim(at, tableBytes)) return s;
  const uint8_t *kinds = nullptr;
  uint32_t kindCount = 0;
  for (size_t i = 0; i < type.num_elems; i++) {
    uint64_t slot = 4 + 2 * i;
    uint16_t offset = slot + 2 <= fieldsBytes ? load<uint16_t>(data + fields + slot) : 0;
    if (!offset) continue;
    TypeCode code = type.type_codes[i];
    const TypeTable *inner = code.base_type == flatbuffers::ET_SEQUENCE ? type.type_refs[code.sequence_ref]() : nullptr;
    bool isStruct = inner && inner->st == flatbuffers::ST_STRUCT && !code.is_repeating;
    bool isReference = code.is_repeating || (code.base_type >= flatbuffers::ET_STRING && !isStruct);
    uint32_t size = isReference ? 4 : scalarBytes(code.base_type), alignment = size;
    if (isStruct) structLayout(*inner, size, alignment);
    uint64_t place = at + offset;
    if (offset < 4 || offset + size > tableBytes || place % alignment) return misplaced(place);
    if (code.base_type == flatbuffers::ET_UTYPE && !code.is_repeating) kinds = data + place, kindCount = 1;
    if (!isReference) continue;
    Status s = ASTRA_OK;
    if (code.is_repeating) {
      s = repeated(place, code, type, kinds, kindCount);
      if (!s && code.base_type == flatbuffers::ET_UTYPE) {
        const uint8_t *list = data + place + load<uint32_t>(data + place);
        kinds = list + 4, kindCount = load<uint32_t>(list);
      }
    } else if (!inner) {
      s = string(place);
    } else if (inner->st == flatbuffers::ST_UNION) {
      s = ofUnion(place, *inner, kindCount ? *kinds : 0);
    } else {
      s = table(place, *inner);
    }
    if (s) return s;
  }
  return ASTRA_OK;
}

} // namespace

Status astra::rt::checkTree(const void *data, uint64_t bytes, Heap &heap, astra_diag *diag) {
  TreeChecker checker{static_cast<const uint8_t *>(data), bytes, diag, {}};
  if (!checker.used.init(heap, bytes / 256 + 1))
    return fail(diag, ASTRA_OUT_OF_MEMORY, "no memory to check the manifest");
  // The root's place and the identifier.
  if (Status s = checker.claim(0, 8)) return s;
  return checker.table(0, *fmt::ManifestTypeTable());
}
