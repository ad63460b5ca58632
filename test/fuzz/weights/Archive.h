//===- Archive.h: a zip archive of stored members ---------------------------===//
// Gives:    the bytes of one, with checksums of 0: whoever reads stored members in place computes none.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace astra::test {

inline void number(std::string &out, uint64_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) out += char(v >> (8 * i));
}

inline std::string archive(const std::vector<std::pair<std::string, std::string>> &members) {
  std::string out, list;
  for (auto &[name, bytes] : members) {
    std::string common;
    for (auto [v, n] : {std::pair(20, 2), {0, 2}, {0, 2}, {0, 4}, {0, 4}}) number(common, uint64_t(v), n);
    number(common, bytes.size(), 4), number(common, bytes.size(), 4), number(common, name.size(), 2),
        number(common, 0, 2);
    list += "PK\1\2";
    number(list, 20, 2);
    list += common;
    for (auto [v, n] : {std::pair(0, 2), {0, 2}, {0, 2}, {0, 4}}) number(list, uint64_t(v), n);
    number(list, out.size(), 4);
    list += name;
    out += "PK\3\4" + common + name + bytes;
  }
  size_t at = out.size();
  out += list + "PK\5\6";
  for (auto [v, n] :
       {std::pair<size_t, int>(0, 4), {members.size(), 2}, {members.size(), 2}, {list.size(), 4}, {at, 4}, {0, 2}})
    number(out, v, n);
  return out;
}

} // namespace astra::test
