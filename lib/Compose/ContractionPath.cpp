//===- ContractionPath.cpp: in which order many operands are contracted ----===//
// Takes:    labels and extents.
// Gives:    a binary tree over the operands, as a path.
// Keeps:    integers alone: a size is a product of extents that saturates, a logarithm has 16 bits behind the point.
#include "astra/Compose/ContractionPath.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <algorithm>
#include <queue>

namespace astra::compose {

Cost costProduct(Cost x, Cost y) {
  if (!x || !y) return 0;
  return x > mostCost / y ? mostCost : x * y;
}
static Cost costSum(Cost x, Cost y) { return std::min(x + y, mostCost); }

std::string costText(Cost c) {
  if (c >= mostCost) return "2^120 or more";
  std::string digits;
  do digits.insert(digits.begin(), char('0' + int(c % 10)));
  while (c /= 10);
  return digits;
}

std::string checkPath(llvm::ArrayRef<PathStep> steps, size_t operands) {
  for (auto [i, step] : llvm::enumerate(steps)) {
    std::string of = "step " + std::to_string(i) + " of the path ";
    if (step.empty()) return of + "names no operand";
    for (auto [k, at] : llvm::enumerate(step)) {
      if (at >= operands)
        return of + "names operand " + std::to_string(at) + ", and " + std::to_string(operands) + " are left";
      if (k && step[k - 1] >= at) return of + "names operand " + std::to_string(at) + " twice";
    }
    operands -= step.size() - 1;
  }
  return operands == 1 ? "" : "the path leaves " + std::to_string(operands) + " operands, and one is the result";
}

namespace {

/// A set of labels.
class Labels {
public:
  Labels() = default;
  explicit Labels(size_t count) : words((count + 63) / 64) {}
  void insert(unsigned l) { words[l / 64] |= uint64_t(1) << l % 64; }
  bool contains(unsigned l) const { return words[l / 64] >> l % 64 & 1; }
  Labels &operator|=(const Labels &o) {
    for (size_t i = 0; i < words.size(); ++i) words[i] |= o.words[i];
    return *this;
  }
  Labels &operator&=(const Labels &o) {
    for (size_t i = 0; i < words.size(); ++i) words[i] &= o.words[i];
    return *this;
  }
  friend Labels operator|(Labels x, const Labels &y) { return x |= y; }
  friend Labels operator&(Labels x, const Labels &y) { return x &= y; }
  bool intersects(const Labels &o) const {
    for (size_t i = 0; i < words.size(); ++i)
      if (words[i] & o.words[i]) return true;
    return false;
  }
  template <class F> void each(F f) const {
    for (size_t i = 0; i < words.size(); ++i)
      for (uint64_t w = words[i]; w; w &= w - 1) f(unsigned(i * 64 + llvm::countr_zero(w)));
  }

private:
  llvm::SmallVector<uint64_t, 4> words;
};

Cost sizeOf(const Labels &labels, llvm::ArrayRef<int64_t> extents) {
  constexpr Cost noOverflow = Cost(1) << 57; // times an extent, of 62 bits
  Cost n = 1;
  labels.each([&](unsigned l) {
    Cost by = Cost(extents[l]);
    n = n < noOverflow ? n * by : costProduct(n, by);
  });
  return n;
}

/// Of the fewest products, then of the smaller largest result.
struct Price {
  Cost flops = 0, largest = 0;
  bool operator<(const Price &o) const { return flops != o.flops ? flops < o.flops : largest < o.largest; }
};

/// The best tree over a few leaves, by dynamic programming over their subsets.
struct Subsets {
  /// For a set of leaves, the subset that is contracted on one side; 0 for single leaves.
  std::vector<uint32_t> split;
  Price price;
  bool found = false;
};

/// Nothing is found where every tree costs `bound` or more, or has a result, but the last, of more than `most`
/// elements.
Subsets bestTree(llvm::ArrayRef<Labels> given, const Labels &out, llvm::ArrayRef<int64_t> givenExtents, Cost bound,
                 Cost most) {
  // The labels that occur, numbered anew.
  Labels all = out;
  for (const Labels &l : given) all |= l;
  std::vector<int64_t> extents;
  std::vector<unsigned> number(givenExtents.size());
  all.each([&](unsigned l) {
    number[l] = extents.size();
    extents.push_back(givenExtents[l]);
  });
  auto renumbered = [&](const Labels &from) {
    Labels to(extents.size());
    from.each([&](unsigned l) { to.insert(number[l]); });
    return to;
  };
  const unsigned n = given.size();
  const uint32_t full = (uint32_t(1) << n) - 1;
  std::vector<Labels> unions(full + 1, Labels(extents.size())), result(full + 1);
  for (uint32_t s = 1; s <= full; ++s) {
    uint32_t low = s & -s;
    unions[s] = s == low ? renumbered(given[llvm::countr_zero(s)]) : unions[s ^ low] | unions[low];
  }
  const Labels last = renumbered(out);
  for (uint32_t s = 1; s <= full; ++s) result[s] = unions[s] & (unions[full ^ s] | last);

  Subsets best;
  best.split.assign(full + 1, 0);
  std::vector<Price> price(full + 1, Price{mostCost, mostCost});
  for (unsigned i = 0; i < n; ++i) price[uint32_t(1) << i] = {};
  for (uint32_t s = 1; s <= full; ++s) {
    uint32_t low = s & -s;
    if (s == low) continue;
    Cost elements = sizeOf(result[s], extents);
    if (s != full && elements > most) continue;
    // The side with the lowest leaf, from the smallest number.
    uint32_t rest = s ^ low;
    for (uint32_t other = rest; other; other = (other - 1) & rest) {
      uint32_t one = s ^ other;
      Cost before = price[one].flops + price[other].flops;
      if (before >= bound || before > price[s].flops) continue;
      Price p{before + sizeOf(result[one] | result[other], extents),
              std::max({elements, price[one].largest, price[other].largest})};
      if (p.flops < bound && p < price[s]) price[s] = p, best.split[s] = other;
    }
  }
  best.price = price[full];
  best.found = n == 1 || best.split[full];
  return best;
}

/// A binary tree over operands: nodes 0 ... n-1 are these, a later one is the contraction of two.
class Tree {
public:
  Tree(const Contraction &c) : extents(c.extents), out(c.extents.size()) {
    for (unsigned l : c.result) out.insert(l);
    for (const auto &o : c.operands) {
      Node leaf;
      leaf.labels = Labels(c.extents.size());
      for (unsigned l : o) leaf.labels.insert(l);
      leaf.elements = sizeOf(leaf.labels, extents);
      nodes.push_back(leaf);
    }
    leaves = nodes.size();
    root = 0;
  }

  size_t size() const { return leaves; }
  Cost flops() const {
    Cost sum = 0;
    for (unsigned n : inner()) sum = costSum(sum, nodes[n].flops);
    return sum;
  }
  void greedy(uint64_t seed);
  void improve(unsigned width, unsigned rounds, uint64_t seed);
  bool exact(Cost bound, Cost most);
  std::vector<PathStep> steps() const;

private:
  struct Node {
    Labels labels;
    unsigned one = 0, other = 0;
    Cost flops = 0, elements = 0;
  };
  std::vector<int64_t> extents;
  Labels out;
  std::vector<Node> nodes;
  size_t leaves;
  unsigned root;

  bool isLeaf(unsigned n) const { return n < leaves; }
  unsigned join(unsigned one, unsigned other, Labels labels) {
    Node made{std::move(labels), one, other, sizeOf(nodes[one].labels | nodes[other].labels, extents), 0};
    made.elements = sizeOf(made.labels, extents);
    nodes.push_back(std::move(made));
    return nodes.size() - 1;
  }
  /// Inner nodes of the tree, those below a node before it.
  std::vector<unsigned> inner() const {
    std::vector<unsigned> order, stack{root};
    while (!stack.empty()) {
      unsigned n = stack.back();
      stack.pop_back();
      if (isLeaf(n)) continue;
      order.push_back(n);
      stack.push_back(nodes[n].one);
      stack.push_back(nodes[n].other);
    }
    std::reverse(order.begin(), order.end());
    return order;
  }
  unsigned build(llvm::ArrayRef<unsigned> parts, const Subsets &best, const Labels &out);
  void compact();
};

/// log2 of a number with 16 bits behind the point.
int64_t logOf(uint64_t n) {
  int64_t whole = 63 - llvm::countl_zero(std::max<uint64_t>(n, 1)), result = whole << 16;
  uint64_t x = whole >= 31 ? n >> (whole - 31) : n << (31 - whole); // in [2^31, 2^32)
  for (int bit = 15; bit >= 0; --bit) {
    x = (x * x) >> 31;
    if (x >> 32) x >>= 1, result |= int64_t(1) << bit;
  }
  return result;
}

/// xorshift64*.
class Generator {
public:
  explicit Generator(uint64_t seed) : state(seed * 0x9E3779B97F4A7C15ull + 1) {}
  uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1Dull;
  }

private:
  uint64_t state;
};

/// Seed 0: the pair whose result is smallest beside the larger of the two; other seeds weigh that otherwise, and add
/// noise.
void Tree::greedy(uint64_t seed) {
  nodes.resize(leaves);
  Generator random(seed);
  const int64_t weight = seed ? 256 - int64_t(seed % 4) * 64 : 256;     // of 256
  const int64_t noise = seed ? (int64_t(1) << (12 + seed / 4 % 6)) : 1; // below it, in 2^-16 of a factor of two
  std::vector<int64_t> logs;
  for (int64_t e : extents) logs.push_back(logOf(uint64_t(e)));
  auto logSize = [&](const Labels &s) {
    int64_t sum = 0;
    s.each([&](unsigned l) { sum += logs[l]; });
    return sum;
  };
  std::vector<int64_t> sizes;
  std::vector<std::vector<unsigned>> holders(extents.size());
  std::vector<unsigned> count(extents.size()); // of what is left
  auto enter = [&](unsigned n) {
    sizes.resize(nodes.size());
    sizes[n] = logSize(nodes[n].labels);
    nodes[n].labels.each([&](unsigned l) {
      holders[l].push_back(n);
      ++count[l];
    });
  };
  std::vector<bool> gone(leaves);
  auto given = [&](unsigned x, unsigned y) { // the labels of the contraction of two
    Labels both = nodes[x].labels | nodes[y].labels, left(extents.size());
    both.each([&](unsigned l) {
      unsigned in = nodes[x].labels.contains(l) + nodes[y].labels.contains(l);
      if (out.contains(l) || count[l] > in) left.insert(l);
    });
    return left;
  };
  using Pair = std::tuple<int64_t, unsigned, unsigned>;
  std::priority_queue<Pair, std::vector<Pair>, std::greater<Pair>> queue;
  auto offer = [&](unsigned x, unsigned y) {
    int64_t score = logSize(given(x, y)) * 256 - weight * std::max(sizes[x], sizes[y]);
    queue.push({score + int64_t(random.next() % uint64_t(noise)) * 256, std::min(x, y), std::max(x, y)});
  };
  for (unsigned i = 0; i < leaves; ++i) enter(i);
  auto neighbours = [&](unsigned n) {
    std::vector<unsigned> near;
    nodes[n].labels.each([&](unsigned l) {
      llvm::erase_if(holders[l], [&](unsigned h) { return gone[h]; });
      near.insert(near.end(), holders[l].begin(), holders[l].end());
    });
    llvm::sort(near);
    near.erase(std::unique(near.begin(), near.end()), near.end());
    return near;
  };
  constexpr size_t fewHolders = 40; // a label of more is no reason to join two
  for (unsigned i = 0; i < leaves; ++i)
    for (unsigned k : neighbours(i))
      if (k > i && (leaves <= fewHolders || [&] {
            Labels shared = nodes[i].labels & nodes[k].labels;
            bool rare = false;
            shared.each([&](unsigned l) { rare |= holders[l].size() <= fewHolders; });
            return rare;
          }()))
        offer(i, k);
  size_t left = leaves;
  root = 0;
  while (left > 1) {
    unsigned x, y;
    if (queue.empty()) { // they share no label: the two smallest
      std::vector<unsigned> rest;
      for (unsigned n = 0; n < nodes.size(); ++n)
        if (!gone[n]) rest.push_back(n);
      llvm::sort(rest, [&](unsigned a, unsigned b) { return std::pair(sizes[a], a) < std::pair(sizes[b], b); });
      x = std::min(rest[0], rest[1]), y = std::max(rest[0], rest[1]);
    } else {
      int64_t score;
      std::tie(score, x, y) = queue.top();
      queue.pop();
      if (gone[x] || gone[y]) continue;
    }
    Labels labels = given(x, y);
    for (unsigned n : {x, y}) {
      gone[n] = true;
      nodes[n].labels.each([&](unsigned l) { --count[l]; });
    }
    root = join(x, y, std::move(labels));
    gone.push_back(false);
    enter(root);
    for (unsigned n : neighbours(root))
      if (n != root) offer(root, n);
    --left;
  }
}

unsigned Tree::build(llvm::ArrayRef<unsigned> parts, const Subsets &best, const Labels &last) {
  const uint32_t full = (uint32_t(1) << parts.size()) - 1;
  auto unionOf = [&](uint32_t s) {
    Labels all(extents.size());
    for (unsigned i = 0; i < parts.size(); ++i)
      if (s >> i & 1) all |= nodes[parts[i]].labels;
    return all;
  };
  // Sets to build, a set behind its two sides.
  std::vector<uint32_t> order, stack{full};
  while (!stack.empty()) {
    uint32_t s = stack.back();
    stack.pop_back();
    order.push_back(s);
    if (uint32_t other = best.split[s]) stack.push_back(s ^ other), stack.push_back(other);
  }
  std::vector<std::pair<uint32_t, unsigned>> made;
  auto nodeOf = [&](uint32_t s) { return llvm::find_if(made, [&](auto &m) { return m.first == s; })->second; };
  for (uint32_t s : llvm::reverse(order)) {
    uint32_t other = best.split[s];
    unsigned n = other ? join(nodeOf(s ^ other), nodeOf(other), unionOf(s) & (unionOf(full ^ s) | last))
                       : parts[llvm::countr_zero(s)];
    made.push_back({s, n});
  }
  return made.back().second;
}

/// Without the nodes that are in the tree no more.
void Tree::compact() {
  std::vector<unsigned> order = inner(), number(nodes.size());
  for (unsigned i = 0; i < leaves; ++i) number[i] = i;
  std::vector<Node> kept(nodes.begin(), nodes.begin() + leaves);
  for (unsigned n : order) {
    number[n] = kept.size();
    Node node = nodes[n];
    node.one = number[node.one];
    node.other = number[node.other];
    kept.push_back(std::move(node));
  }
  root = number[root];
  nodes = std::move(kept);
}

/// Each node's subtree of `width` leaves in its best order. The inner nodes of the most products are opened first, in
/// every other round any.
void Tree::improve(unsigned width, unsigned rounds, uint64_t seed) {
  Generator random(seed);
  unsigned idle = 0;
  for (unsigned round = 0; round < rounds && idle < 3; ++round) {
    bool better = false;
    for (unsigned n : inner()) {
      std::vector<unsigned> parts{nodes[n].one, nodes[n].other};
      Cost now = nodes[n].flops;
      while (parts.size() < width) {
        int next = -1;
        uint64_t order = 0;
        for (size_t i = 0; i < parts.size(); ++i) {
          if (isLeaf(parts[i])) continue;
          uint64_t draw = round % 2 ? random.next() : 0;
          if (next < 0 || (round % 2 ? draw > order : nodes[parts[i]].flops > nodes[parts[next]].flops))
            next = i, order = draw;
        }
        if (next < 0) break;
        const Node opened = nodes[parts[next]];
        now = costSum(now, opened.flops);
        parts[next] = opened.one;
        parts.push_back(opened.other);
      }
      if (parts.size() < 3) continue;
      std::vector<Labels> labels;
      for (unsigned p : parts) labels.push_back(nodes[p].labels);
      Subsets best = bestTree(labels, nodes[n].labels, extents, now, mostCost);
      if (!best.found) continue;
      better = true;
      Node made = nodes[build(parts, best, nodes[n].labels)];
      nodes[n] = std::move(made); // in its place, for the node above
    }
    compact();
    idle = better ? 0 : idle + 1;
  }
}

bool Tree::exact(Cost bound, Cost most) {
  nodes.resize(leaves);
  std::vector<unsigned> parts;
  std::vector<Labels> labels;
  for (unsigned i = 0; i < leaves; ++i) {
    parts.push_back(i);
    labels.push_back(nodes[i].labels);
  }
  Subsets best = bestTree(labels, out, extents, bound, most);
  if (!best.found) return false;
  root = build(parts, best, out);
  return true;
}

std::vector<PathStep> Tree::steps() const {
  std::vector<PathStep> path;
  std::vector<unsigned> left;
  for (unsigned i = 0; i < leaves; ++i) left.push_back(i);
  for (unsigned n : inner()) {
    PathStep step;
    for (unsigned side : {nodes[n].one, nodes[n].other}) step.push_back(llvm::find(left, side) - left.begin());
    llvm::sort(step);
    for (unsigned at : llvm::reverse(step)) left.erase(left.begin() + at);
    left.push_back(n);
    path.push_back(std::move(step));
  }
  return path;
}

constexpr unsigned mostExact = 16, trials = 64, improved = 12;

/// The best of many: nothing where none keeps within `most`.
std::optional<std::vector<PathStep>> bestSteps(const Contraction &c, Cost most) {
  Tree start(c);
  if (start.size() == 1) return std::vector<PathStep>();
  if (start.size() <= mostExact) {
    Tree bounding = start;
    bounding.greedy(0);
    Cost bound = most == mostCost ? costSum(bounding.flops(), 1) : mostCost;
    if (start.exact(bound, most)) return start.steps();
    return most == mostCost ? std::optional(bounding.steps()) : std::nullopt; // all are beyond what costs can say
  }
  std::vector<std::pair<Cost, uint64_t>> tried;
  for (uint64_t seed = 0; seed < trials; ++seed) {
    Tree t = start;
    t.greedy(seed);
    tried.push_back({t.flops(), seed});
  }
  llvm::sort(tried);
  std::optional<Tree> best;
  auto take = [&](Tree t) {
    if (!best || t.flops() < best->flops()) best = std::move(t);
  };
  for (unsigned i = 0; i < improved; ++i) {
    Tree t = start;
    t.greedy(tried[i].second);
    t.improve(8, 16, i);
    take(std::move(t));
  }
  best->improve(11, 8, trials);
  if (most == mostCost) return best->steps();
  // Within the bound where reordering of subtrees gets there; else it is for slices.
  std::vector<PathStep> steps = best->steps();
  ContractionCost cost = costOf(c, {steps, {}});
  bool fits = true;
  for (size_t i = 0; i + 1 < cost.steps.size(); ++i) fits &= cost.steps[i].elements <= most;
  if (fits) return steps;
  return std::nullopt;
}

/// The largest result of a step but the last.
Cost largestInner(const ContractionCost &cost) {
  Cost largest = 0;
  for (size_t i = 0; i + 1 < cost.steps.size(); ++i) largest = std::max(largest, cost.steps[i].elements);
  return largest;
}

/// Slices of a path until every result but the last has `most` elements: each time the label that leaves the fewest
/// products, then the smallest results, of those that the largest result has.
bool slice(const Contraction &c, ContractionPath &path, Cost most) {
  ContractionCost now = costOf(c, path);
  while (largestInner(now) > most) {
    Labels candidates(c.extents.size());
    Cost largest = largestInner(now);
    for (size_t i = 0; i + 1 < now.steps.size(); ++i)
      if (now.steps[i].elements == largest)
        for (unsigned l : now.steps[i].labels)
          if (c.extents[l] > 1 && !llvm::is_contained(path.slices, l)) candidates.insert(l);
    std::optional<std::pair<std::pair<Cost, Cost>, unsigned>> best;
    candidates.each([&](unsigned l) {
      ContractionPath tried = path;
      tried.slices.push_back(l);
      ContractionCost cost = costOf(c, tried);
      std::pair score{std::pair{cost.flops, largestInner(cost)}, l};
      if (!best || score < *best) best = score;
    });
    if (!best) return false;
    path.slices.push_back(best->second);
    now = costOf(c, path);
  }
  return true;
}

} // namespace

ContractionCost costOf(const Contraction &c, const ContractionPath &path) {
  std::vector<int64_t> extents = c.extents;
  Cost slices = 1;
  for (unsigned l : path.slices) slices = costProduct(slices, Cost(extents[l])), extents[l] = 1;
  Labels out(extents.size()), sliced(extents.size());
  for (unsigned l : c.result) out.insert(l);
  for (unsigned l : path.slices) sliced.insert(l);
  std::vector<Labels> left;
  for (const auto &o : c.operands) {
    Labels labels(extents.size());
    for (unsigned l : o) labels.insert(l);
    left.push_back(std::move(labels));
  }
  std::vector<unsigned> count(extents.size());
  for (const Labels &l : left) l.each([&](unsigned x) { ++count[x]; });
  ContractionCost total;
  for (const PathStep &step : path.steps) {
    Labels acc = left[step[0]];
    StepCost cost;
    for (size_t i = 1; i < step.size(); ++i) {
      const Labels &y = left[step[i]];
      Labels both = acc | y, kept(extents.size());
      cost.flops = costSum(cost.flops, sizeOf(both, extents));
      both.each([&](unsigned l) {
        unsigned in = acc.contains(l) + y.contains(l);
        if (out.contains(l) || count[l] > in) kept.insert(l);
        count[l] -= in - kept.contains(l);
      });
      acc = kept;
      total.largest = std::max(total.largest, sizeOf(acc, extents));
    }
    for (unsigned at : llvm::reverse(step)) left.erase(left.begin() + at);
    acc.each([&](unsigned l) {
      if (!sliced.contains(l)) cost.labels.push_back(l);
    });
    cost.elements = sizeOf(acc, extents);
    left.push_back(std::move(acc));
    total.flops = costSum(total.flops, cost.flops);
    total.largest = std::max(total.largest, cost.elements); // also of a step of one operand
    total.steps.push_back(std::move(cost));
  }
  total.flops = costProduct(total.flops, slices);
  return total;
}

std::optional<ContractionPath> choosePath(const Contraction &c, std::optional<Cost> mostElements) {
  ContractionPath free{*bestSteps(c, mostCost), {}};
  if (!mostElements || largestInner(costOf(c, free)) <= *mostElements) return free;
  std::optional<ContractionPath> best;
  if (slice(c, free, *mostElements)) best = free;
  if (auto steps = bestSteps(c, *mostElements)) {
    ContractionPath other{*steps, {}};
    if (!best || costOf(c, other).flops <= costOf(c, *best).flops) best = other;
  }
  return best;
}

} // namespace astra::compose
