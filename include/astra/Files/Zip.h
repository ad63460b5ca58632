//===- Zip.h: the members of a zip archive -----------------------------------===//
// Takes:    a zip archive (PKWARE's APPNOTE 6.3): stored and deflated members, with 64-bit sizes where they need them.
// Gives:    names and bytes of the members.
// Keeps:    an archive is input from outside: every place and length is checked, and every member's CRC-32.
// Does not: know encryption, several disks, other methods, or deflated members where zlib is missing: they are refused.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace astra {

struct ZipMember {
  std::string name;
  uint64_t header = 0, packed = 0, size = 0; // the place of its header, bytes in the archive, bytes of the member
  uint32_t crc = 0;
  uint16_t method = 0, flags = 0;
};

/// False and a sentence in `error`, without the file's name, if the archive is malformed.
bool zipMembers(std::span<const uint8_t> archive, std::vector<ZipMember> &out, std::string &error);
/// The bytes of a member that is stored, in the archive; empty and a sentence in `error` of a deflated one. Its
/// checksum is not computed.
bool stored(std::span<const uint8_t> archive, const ZipMember &member, std::span<const uint8_t> &out,
            std::string &error);
bool unzip(std::span<const uint8_t> archive, const ZipMember &member, std::vector<uint8_t> &out, std::string &error);

} // namespace astra
