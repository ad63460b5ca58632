//===- Blob.h: the bytes of a tokenizer -----------------------------------===//
// Takes:    nothing; these are the records of the file that a tokenizer is compiled into.
// Gives:    header, section table, records and their numbers, for the writer (lib/Import/Text) and the library.
// Keeps:    little-endian, no pointer, every section at a multiple of 8. All tables that depend on a version of Unicode
//           are in the file, so that a text's tokens never change with the library.
// Does not: read or write files.
//
// A tokenizer is a list of steps on pieces of text, then a model that turns each piece into tokens. A text begins as
// one piece; names of added tokens cut it first. What is not there (no scores, no merges) has no section.
#pragma once

#include <cstdint>

namespace astra::text {

inline constexpr unsigned char kMagic[8] = {0x89, 'A', 'S', 'T', 'T', '\r', '\n', 0};
/// A reader refuses another major, and a minor newer than its own.
inline constexpr uint16_t kMajor = 1, kMinor = 0;
inline constexpr uint32_t kNone = 0xffffffffu;
/// Limits that the reader enforces.
inline constexpr uint32_t kMaxTokens = 1u << 24, kMaxSteps = 64, kMaxCode = 4096, kMaxSets = 256, kMaxAdded = 1u << 16,
                          kMaxMerges = 1u << 26;

struct Header {
  unsigned char magic[8];
  uint16_t major, minor;
  uint32_t sections; ///< records behind the header
  uint64_t bytes;    ///< of the whole file
};
static_assert(sizeof(Header) == 24);

enum class SectionKind : uint32_t {
  Info = 1,          ///< one Info
  TokenEnds = 2,     ///< u32 per token: where its bytes end in Tokens; they begin where those of the one before end
  Tokens = 3,        ///< bytes
  TokenKinds = 4,    ///< u8 per token: TokenKind
  Sorted = 5,        ///< u32: the tokens of the model's vocabulary in the order of their bytes, no two equal
  Scores = 6,        ///< f64 per token: Unigram
  Merges = 7,        ///< Merge: BPE, the first to be done first
  Bytes = 8,         ///< 256 u32: the token of each byte, or kNone
  OutputEnds = 9,    ///< u32 per token, into Output; absent: what a token stands for is its bytes
  Output = 10,       ///< bytes
  Added = 11,        ///< Added
  StringEnds = 12,   ///< u32 per string, into Strings
  Strings = 13,      ///< UTF-8
  Steps = 14,        ///< Step
  Code = 15,         ///< u32: the programs of patterns
  SetEnds = 16,      ///< u32 per set of characters, into Ranges
  Ranges = 17,       ///< Range, ascending, apart
  MapEnds = 18,      ///< u32 per map of characters, into MapEntries
  MapEntries = 19,   ///< MapEntry, ascending
  Classes = 20,      ///< Class, ascending: canonical combining classes that are not 0
  Compositions = 21, ///< Composition, ascending by first and second
  Before = 22,       ///< u32: tokens in front of a text
  After = 23,        ///< u32: tokens behind it
  Chat = 24,         ///< one Chat
  RuleEnds = 25,     ///< u32 per list of rules, into Rules
  Rules = 26,        ///< Rule, in the order of what is looked for, no two equal
};

struct Section {
  uint32_t kind; ///< SectionKind, ascending; an unknown one is refused
  uint32_t reserved;
  uint64_t offset, bytes;
};
static_assert(sizeof(Section) == 24);

enum class ModelKind : uint32_t { Bpe = 1, Unigram = 2, WordPiece = 3 };

enum ModelFlag : uint32_t {
  kByteLevel = 1,      ///< a piece begins as its bytes, each a token (Bytes); else as its characters
  kByteFallback = 2,   ///< a character outside of the vocabulary is its bytes, if all of them are tokens
  kWholeFirst = 4,     ///< a piece that is a token is that token, whatever the merges say
  kFuseUnknown = 8,    ///< neighbouring unknown characters are one token
  kDropSpace = 16,     ///< decoding: one space at the begin is left out
  kFirstVerbatim = 32, ///< decoding: the first token stands for its bytes
};
inline constexpr uint32_t kModelFlags = 63;

struct Info {
  uint32_t kind;   ///< ModelKind
  uint32_t tokens; ///< added ones too
  uint32_t flags;  ///< ModelFlag
  uint32_t unknown;
  uint32_t begin, end, turn, pad; ///< tokens with a role, or kNone
  uint32_t continuing;            ///< string: what a piece's later tokens begin with (WordPiece), or kNone
  uint32_t longest;               ///< characters of a piece; a longer one is unknown (WordPiece)
  uint32_t normalizers;           ///< how many of the steps come before added tokens are looked for in the result
  uint32_t wordSet;               ///< the set of characters of words, for Added::kSingleWord, or kNone
  uint32_t spaceSet;              ///< the set of white space, for kLeft and kRight, or kNone
  uint32_t reserved;
};
static_assert(sizeof(Info) == 56);

enum class TokenKind : uint8_t { Normal = 0, Special = 1, Byte = 2, Unused = 3 };

struct Merge {
  uint32_t left, right, result;
};

enum AddedFlag : uint32_t {
  kSpecial = 1,    ///< looked for only where the caller says so
  kNormalized = 2, ///< looked for behind the normalizing steps
  kLeft = 4,       ///< takes the white space before it
  kRight = 8,      ///< takes the white space behind it
  kSingleWord = 16 ///< only where no character of a word touches it
};
struct Added {
  uint32_t token, flags, string;
};

enum class StepKind : uint32_t {
  Map = 1,            ///< a = map: each character that it has becomes its string
  Decompose = 2,      ///< a = map: as Map, Hangul by rule, then canonical order (Unicode's D65, D68)
  Compose = 3,        ///< canonical composition (Unicode's D117)
  Replace = 4,        ///< a, b = strings: each a becomes b
  ReplacePattern = 5, ///< a = code, b = string
  Prepend = 6,        ///< a = string, b = PrependWhere; an empty piece stays empty
  Strip = 7,          ///< a = set, b = sides: 1 left, 2 right, 3 both
  Surround = 8,       ///< a = set, b = string: before and behind each character of the set
  Split = 9,          ///< a = code, b = SplitHow, c = 1: what lies between matches is taken for the matches
  Rewrite = 10,       ///< a = list of rules, b = RewriteHow, c = the first of kClusterSets sets, for Clusters
};
enum class PrependWhere : uint32_t { Always = 0, UnlessThere = 1, FirstUnlessThere = 2 };
enum class SplitHow : uint32_t { Removed = 0, Isolated = 1, WithPrevious = 2, WithNext = 3, Contiguous = 4 };

/// Where the rules of a list apply. Longest: everywhere, from the left, the longest one. Clusters: a cluster of
/// characters of less than kClusterBytes bytes that begins with what a rule looks for becomes its text, as a whole, the
/// shortest rule first; other clusters are rewritten character by character.
enum class RewriteHow : uint32_t { Longest = 0, Clusters = 1 };
inline constexpr uint32_t kClusterBytes = 6;
/// Characters by what they do to a cluster: controls, those that extend one, that stand before one, that take space
/// behind one, pictures (annex 29 of Unicode: Control, Extend, Prepend, SpacingMark, Extended_Pictographic).
inline constexpr uint32_t kClusterSets = 5;

struct Step {
  uint32_t kind, a, b, c;
};

/// A program is a row of words: the operation in the low 8 bits, an argument above. It runs forward only: targets lie
/// behind their instruction. Alternatives are tried in order, the longest run first: a backtracking matcher's meaning.
enum class Code : uint32_t {
  Match = 0,    ///< the end of a program
  Set = 1,      ///< argument = set: one character of it
  Run = 2,      ///< argument = set; two words follow: least and most; as many as there are, fewer if the rest needs it
  Hold = 3,     ///< the same, never fewer
  Either = 4,   ///< argument = distance: goes on behind it, or, if that fails, at the target
  Jump = 5,     ///< argument = distance
  Ahead = 6,    ///< argument = distance: the program up to the target, which ends with Match, must match here
  NotAhead = 7, ///< argument = distance: it must not
  AtBegin = 8,  ///< of the piece
  AtEnd = 9,
};

struct Range {
  uint32_t first, last;
};
struct MapEntry {
  uint32_t character, string;
};
struct Rule {
  uint32_t from, to; ///< strings; `from` is not empty
};
struct Class {
  uint32_t character, value;
};
struct Composition {
  uint32_t first, second, result;
};

enum ChatFlag : uint32_t {
  kSystemInUser = 1, ///< the system's content, in its prefix and suffix, goes in front of the first user's content
  kTrim = 2,         ///< white space at both ends of contents is left out
  kNoSystem = 4,     ///< a system message is refused
};
/// Strings; kNone is an empty one.
struct Chat {
  uint32_t name, begin;
  uint32_t systemPrefix, systemSuffix, userPrefix, userSuffix, assistantPrefix, assistantSuffix, answer;
  uint32_t system; ///< content of the system message where there is none; kNone: nothing is put there
  uint32_t flags;  ///< ChatFlag
  uint32_t reserved;
};
static_assert(sizeof(Chat) == 48);

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the records are little-endian");

} // namespace astra::text
