//===- Language.cpp: a module from the files of a language model -----------===//
// Takes:    a folder or a GGUF file, neither of which is trusted.
// Gives:    a module with the entries of docs/language.md, or a sentence.
// Keeps:    a call that does not fit changes nothing of its sequence, and says so in `status`.
#include "astra/Import/Language.h"
#include "Network.h"
#include "astra/Compose/Reduction.h"
#include "astra/Compose/TokenSampling.h"
#include "astra/IR/Index.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace astra;
using namespace astra::language;
using compose::Dims;
using llvm::StringRef;

namespace {

/// Entries over one network.
class Entries {
public:
  Entries(Module &m, compose::Composer &b, const Config &c, Tensors &w, const LanguageOptions &o)
      : m(m), b(b), c(c), o(o), network(b, c, w, o), batch(b.idx(o.batch)), vocabulary(b.idx(c.vocabulary)),
        chunk(b.b.dim("chunk", 1, o.chunk)), lengths(b.b.state("length", DType::I32, {batch})),
        history(b.b.state("history", DType::I32, {batch, b.idx(o.context)})) {}

  void build() {
    prefill();
    decode();
    score();
    embed();
    sample();
    reset();
    m.dims.push_back(chunk);
    m.states.push_back({lengths, nullptr});
    m.states.push_back({history, nullptr});
    for (UOpRef state : network.states()) m.states.push_back({state, nullptr});
  }

private:
  Module &m;
  compose::Composer &b;
  const Config &c;
  const LanguageOptions &o;
  Network network;
  UOpRef batch, vocabulary, chunk, lengths, history;
  Entry e;               // at hand
  UOpRef said = nullptr; // its status

  void begin(const char *name) {
    e = {};
    e.name = name;
  }
  UOpRef input(const char *name, DType t, llvm::ArrayRef<UOpRef> shape) {
    UOpRef x = b.b.arg(int64_t(e.inputs.size()), t, shape);
    e.inputs.push_back({name, x});
    return x;
  }
  void output(const char *name, UOpRef x) { e.outputs.push_back({name, x}); }
  void end() {
    if (!b.failed()) m.entries.push_back(std::move(e));
  }

  UOpRef column(UOpRef x) { return b.reshape(x, {batch, b.idx(1)}); }
  /// bool, where a number is one of a token.
  UOpRef isToken(UOpRef x) {
    return b.bin(Op::And, b.bin(Op::Le, b.literal(x, 0), x), b.bin(Op::Lt, x, double(c.vocabulary)));
  }

  /// What a call gives a sequence: 0, or 1 where the tokens do not fit, 2 where one of them is none.
  UOpRef status(UOpRef counts, UOpRef rows, llvm::ArrayRef<UOpRef> tokens) {
    UOpRef none = b.literal(counts, 0), number = b.cast(b.fromIndex(rows, DType::I64), DType::I32);
    UOpRef fits = b.bin(Op::And, b.bin(Op::Le, none, counts), b.bin(Op::Le, counts, number));
    fits = b.bin(Op::And, fits, b.bin(Op::Le, b.bin(Op::Add, lengths, counts), double(o.context)));
    UOpRef counted = b.bin(Op::Lt, b.iota(DType::I32, {batch, rows}, 1), column(counts)), wrong = nullptr;
    for (UOpRef x : tokens) {
      UOpRef bad = b.bin(Op::And, counted, b.un(Op::Not, isToken(x)));
      wrong = wrong ? b.bin(Op::Or, wrong, bad) : bad;
    }
    wrong = b.reshape(b.reduce(ReduceKind::Max, b.cast(wrong, DType::I32), {1}), {batch});
    return b.select(fits, b.bin(Op::Mul, wrong, 2.0), b.literal(counts, 1));
  }

  /// Reads tokens [batch, rows], of which each sequence has its first `counts`; gives hidden states of them all.
  /// `others`: tokens that must be right too.
  struct Read {
    UOpRef hidden = nullptr, counts = nullptr;
  };
  Read read(UOpRef tokens, UOpRef counts, UOpRef rows, llvm::ArrayRef<UOpRef> others = {}) {
    llvm::SmallVector<UOpRef, 2> all{tokens};
    all.append(others.begin(), others.end());
    said = status(counts, rows, all);
    counts = b.select(b.bin(Op::Eq, said, 0.0), counts, b.literal(counts, 0));
    Network::Pass pass;
    pass.tokens = tokens;
    pass.place = compose::cachePlace(b, lengths, counts, rows, o.context);
    if (b.failed()) return {};
    UOpRef hidden = network.run(pass);
    e.updates = std::move(pass.updates);
    e.updates.push_back({"length", b.bin(Op::Add, lengths, counts)});
    e.updates.push_back({"history", compose::withTokens(b, history, tokens, pass.place)});
    return {hidden, counts};
  }
  void prefill() {
    begin("prefill");
    UOpRef tokens = input("tokens", DType::I32, {batch, chunk}), counts = input("count", DType::I32, {batch});
    Read r = read(tokens, counts, chunk);
    // The row of each sequence's last token.
    UOpRef last = b.bin(Op::Max, b.bin(Op::Sub, b.cast(r.counts, DType::I64), 1.0), 0.0);
    UOpRef first = b.bin(Op::Mul, b.iota(DType::I64, {batch}, 0), b.fromIndex(chunk, DType::I64));
    UOpRef rows = b.make(Op::Gather, {r.hidden, b.bin(Op::Add, first, last)}, {0});
    output("logits", network.scores(network.finalNorm(rows)));
    output("status", said);
    end();
  }

  void decode() {
    begin("decode");
    UOpRef tokens = input("tokens", DType::I32, {batch});
    UOpRef counts = b.cast(b.bin(Op::Ne, tokens, -1.0), DType::I32);
    Read r = read(column(tokens), counts, b.idx(1));
    output("logits", network.scores(network.finalNorm(r.hidden)));
    output("status", said);
    end();
  }

  void score() {
    begin("score");
    UOpRef tokens = input("tokens", DType::I32, {batch, chunk}), targets = input("targets", DType::I32, {batch, chunk});
    UOpRef counts = input("count", DType::I32, {batch});
    Read r = read(tokens, counts, chunk, {targets});
    UOpRef logprobs = compose::logSoftmax(b, network.scores(network.finalNorm(r.hidden)), {1});
    UOpRef index = b.reshape(b.cast(targets, DType::I64), {idxMul(b.c, batch, chunk), b.idx(1)});
    UOpRef picked = b.reshape(b.make(Op::Pick, {logprobs, index}, {1}), {batch, chunk});
    UOpRef counted = b.bin(Op::Lt, b.iota(DType::I32, {batch, chunk}, 1), column(r.counts));
    if (picked) output("logprobs", b.select(counted, picked, b.literal(picked, 0)));
    output("status", said);
    end();
  }

  void embed() {
    begin("embed");
    UOpRef tokens = input("tokens", DType::I32, {batch, chunk}), counts = input("count", DType::I32, {batch});
    Read r = read(tokens, counts, chunk);
    output("hidden", b.reshape(network.finalNorm(r.hidden), {batch, chunk, b.idx(c.width)}));
    output("status", said);
    end();
  }

  void sample() {
    begin("sample");
    compose::TokenSamplingOperands s;
    s.scores = input("logits", DType::F32, {batch, vocabulary});
    s.allowed = input("allowed", DType::Bool, {batch, vocabulary});
    s.temperature = input("temperature", DType::F32, {batch});
    s.topK = input("top_k", DType::I32, {batch});
    s.topP = input("top_p", DType::F32, {batch});
    s.minP = input("min_p", DType::F32, {batch});
    s.repetition = input("repetition_penalty", DType::F32, {batch});
    s.seed = input("seed", DType::U32, {batch});
    s.history = history, s.lengths = lengths;
    compose::SampledTokens drawn = compose::sampleTokens(b, s);
    output("tokens", drawn.tokens);
    output("logprobs", drawn.logprobs);
    end();
  }

  /// Values behind a sequence's end are zeros: what a mask weighs with 0 has to be a number.
  void reset() {
    begin("reset");
    UOpRef keep = input("keep", DType::I32, {batch});
    UOpRef cuts = b.bin(Op::And, b.bin(Op::Le, b.literal(keep, 0), keep), b.bin(Op::Lt, keep, lengths));
    UOpRef left = b.select(cuts, keep, lengths), cleared = b.bin(Op::Sub, lengths, left);
    UOpRef most = b.cast(b.reshape(b.reduce(ReduceKind::Max, cleared, {0}), {}), DType::I64);
    if (b.failed()) return;
    UOpRef rows = b.b.extent(most, 0, o.context);
    compose::CachePlace place = compose::cachePlace(b, left, cleared, rows, o.context);
    Dims dims{batch, b.idx(c.keyHeads), rows, b.idx(c.headSize)};
    UOpRef zeros = b.broadcastTo(b.b.lit(DType::F32, 0), dims);
    for (const Network::Layer &layer : network.layers)
      Network::update(e.updates, layer.values, compose::withValues(b, layer.values, zeros, place));
    e.updates.push_back({"length", left});
    output("length", left);
    end();
  }
};

llvm::Error invalid(const llvm::Twine &sentence) {
  return llvm::createStringError(std::errc::invalid_argument, "%s", sentence.str().c_str());
}

/// The options with what the model says in the place of what was not asked for.
llvm::Expected<LanguageOptions> settled(LanguageOptions o, const Config &c) {
  if (!o.context) o.context = std::min<int64_t>(c.positions, 4096);
  o.chunk = std::min(o.chunk, o.context);
  if (o.context < 1 || o.batch < 1 || o.chunk < 1) return invalid("a context, a batch and a chunk are 1 or more");
  if (c.architecture->has(Positions) && o.context > c.positions)
    return invalid("a context of " + llvm::Twine(o.context) + " is more than the " + llvm::Twine(c.positions) +
                   " positions that the model has learned");
  constexpr int64_t mostElements = int64_t(1) << 38;
  if (o.context > (1 << 24) || o.batch > 4096 || o.chunk > (1 << 16) ||
      __int128(o.context) * o.batch * c.keyHeads * c.headSize > mostElements)
    return invalid("a cache of " + llvm::Twine(o.batch) + " sequences of " + llvm::Twine(o.context) +
                   " tokens is too large");
  return o;
}

llvm::Expected<Module> build(const WeightFile &file, const Config &c, const LanguageOptions &given) {
  llvm::Expected<LanguageOptions> o = settled(given, c);
  if (!o) return o.takeError();
  Module m;
  m.name = c.architecture->name.str();
  compose::Composer b(m.ctx());
  Tensors tensors(file, c, b);
  Entries entries(m, b, c, tensors, *o);
  entries.build();
  if (!b.failed()) tensors.checkAllUsed();
  if (b.failed())
    return llvm::createStringError(b.isUnsupported() ? std::errc::not_supported : std::errc::invalid_argument, "%s",
                                   b.failure().c_str());
  m.params = std::move(b.params);
  return m;
}

/// An error with the file in front.
llvm::Error of(StringRef path, llvm::Error e) {
  std::error_code code;
  std::string text;
  llvm::handleAllErrors(std::move(e), [&](const llvm::ErrorInfoBase &info) {
    code = info.convertToErrorCode();
    text = info.message();
  });
  if (!llvm::StringRef(text).starts_with(path)) text = path.str() + ": " + text;
  return llvm::createStringError(
      code == std::errc::not_supported ? code : std::make_error_code(std::errc::invalid_argument), text);
}

} // namespace

bool astra::isLanguageModel(StringRef path) {
  return llvm::sys::fs::is_directory(path) || llvm::sys::path::extension(path) == ".gguf";
}

/// The configuration of a GGUF file, or of the config.json beside weights.
static llvm::Expected<Config> configOf(StringRef path, const WeightFile &weights) {
  if (weights.container() == WeightContainer::GGUF) return readConfig(weights);
  llvm::SmallString<128> file(path);
  llvm::sys::path::append(file, "config.json");
  auto text = llvm::MemoryBuffer::getFile(file);
  if (!text) return llvm::createFileError(file, text.getError());
  llvm::Expected<Config> config = readConfig((*text)->getBuffer());
  if (!config) return of(file, config.takeError());
  return config;
}

llvm::Expected<Module> astra::importLanguageModel(StringRef path, const LanguageOptions &options) {
  llvm::Expected<WeightFile> weights = WeightFile::open(path);
  if (!weights) return weights.takeError();
  llvm::Expected<Config> config = configOf(path, *weights);
  if (!config) return of(path, config.takeError());
  llvm::Expected<Module> m = build(*weights, *config, options);
  if (!m) return of(path, m.takeError());
  return m;
}

std::vector<LanguageRow> astra::languageRows() {
  std::vector<LanguageRow> rows;
  for (const Architecture &a : architectures()) rows.push_back({a.name.data(), a.gguf.data(), a.remarks});
  return rows;
}
