//===- WeightBlocks.cpp: blocks taken apart into planes, and put together ---===//
// Takes:    bytes of whole blocks.
// Gives:    see WeightBlocks.h: splitBlocks and joinBlocks are one table of bit fields, read in both directions.
// Source:   the structures of ggml's ggml-common.h (block_q4_0 ...), as gguf-py's quants.py reads them.
#include "astra/Compose/WeightBlocks.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <cstring>

using namespace astra;
using namespace astra::compose;

namespace {

/// Bits of a block that are bits of a plane's part for that block.
struct Field {
  unsigned plane;
  unsigned from, to, bits; // the first bit in the block, and in the plane's part
};

struct BlockForm {
  std::vector<WeightPlane> planes;
  std::vector<Field> fields;
  std::vector<unsigned> partBytes; // of a plane for a block
};

/// Writes down a format: planes, then where their bits are.
class FormWriter {
public:
  BlockForm form;
  unsigned plane(const char *suffix, DType t, unsigned elements) {
    form.planes.push_back({suffix, t, elements});
    return unsigned(form.planes.size() - 1);
  }
  void field(unsigned plane, unsigned from, unsigned to, unsigned bits) {
    form.fields.push_back({plane, from, to, bits});
  }
  /// A plane that lies in the block as it is.
  void whole(const char *suffix, DType t, unsigned elements, unsigned byte, unsigned bytes) {
    field(plane(suffix, t, elements), byte * 8, 0, bytes * 8);
  }
  void f16(const char *suffix, unsigned elements, unsigned byte) { whole(suffix, DType::F16, elements, byte, 2); }
  /// Codes of `bits` bits: parts of `stride` bytes have the codes of as many elements in their lowest bits, of the next
  /// ones above, and so on.
  void codes(const char *suffix, DType t, unsigned bits, unsigned byte, unsigned bytes, unsigned stride) {
    unsigned p = plane(suffix, t, 1), element = 0;
    for (unsigned part = 0; part < bytes; part += stride)
      for (unsigned shift = 0; shift < 8; shift += bits)
        for (unsigned i = 0; i < stride; ++i, ++element) field(p, (byte + part + i) * 8 + shift, element * bits, bits);
  }
  /// Bit b of byte i is that of element 32 b + i; in the plane bit e % 8 of byte e / 8.
  void bitsAcross(const char *suffix, unsigned byte) {
    unsigned p = plane(suffix, DType::U8, 8);
    for (unsigned b = 0; b < 8; ++b)
      for (unsigned i = 0; i < 32; ++i) field(p, (byte + i) * 8 + b, b * 32 + i, 1);
  }
  /// The 12 bytes of Q4_K and Q5_K with eight scales and eight minima of 6 bits.
  void scalesOfEight(unsigned byte) {
    unsigned s = plane(".s", DType::U8, 32), t = plane(".t", DType::U8, 32);
    for (unsigned i = 0; i < 4; ++i)
      for (unsigned which : {0u, 1u}) {
        unsigned p = which ? t : s, low = (byte + 4 * which + i) * 8;
        field(p, low, i * 8, 6);
        field(p, (byte + 8 + i) * 8 + 4 * which, (4 + i) * 8, 4);
        field(p, low + 6, (4 + i) * 8 + 4, 2);
      }
  }
  /// The 12 bytes of Q3_K with sixteen scales of 6 bits.
  void scalesOfSixteen(unsigned byte) {
    unsigned p = plane(".s", DType::U8, 16);
    for (unsigned i = 0; i < 16; ++i) {
      field(p, (byte + i % 8) * 8 + i / 8 * 4, i * 8, 4);
      field(p, (byte + 8 + i % 4) * 8 + i / 4 * 2, i * 8 + 4, 2);
    }
  }
};

BlockForm formFor(WeightFormat format) {
  FormWriter w;
  auto halves = [&](unsigned byte) { w.codes(".q", DType::U4, 4, byte, 16, 16); };
  switch (format) {
  case WeightFormat::Q4_0:
  case WeightFormat::IQ4_NL: halves(2), w.f16(".d", 32, 0); break;
  case WeightFormat::Q4_1: halves(4), w.f16(".d", 32, 0), w.f16(".m", 32, 2); break;
  case WeightFormat::Q5_0: halves(6), w.whole(".h", DType::U8, 8, 2, 4), w.f16(".d", 32, 0); break;
  case WeightFormat::Q5_1: halves(8), w.whole(".h", DType::U8, 8, 4, 4), w.f16(".d", 32, 0), w.f16(".m", 32, 2); break;
  case WeightFormat::Q8_0: w.whole(".q", DType::I8, 1, 2, 32), w.f16(".d", 32, 0); break;
  case WeightFormat::MXFP4: halves(1), w.whole(".e", DType::U8, 32, 0, 1); break;
  case WeightFormat::Q2_K: {
    w.codes(".q", DType::U2, 2, 16, 64, 32);
    unsigned s = w.plane(".s", DType::U4, 16), t = w.plane(".t", DType::U4, 16);
    for (unsigned i = 0; i < 16; ++i) w.field(s, i * 8, i * 4, 4), w.field(t, i * 8 + 4, i * 4, 4);
    w.f16(".d", 256, 80), w.f16(".dmin", 256, 82);
    break;
  }
  case WeightFormat::Q3_K:
    w.codes(".q", DType::U2, 2, 32, 64, 32), w.bitsAcross(".h", 0), w.scalesOfSixteen(96), w.f16(".d", 256, 108);
    break;
  case WeightFormat::Q4_K:
    w.codes(".q", DType::U4, 4, 16, 128, 32), w.scalesOfEight(4), w.f16(".d", 256, 0), w.f16(".dmin", 256, 2);
    break;
  case WeightFormat::Q5_K:
    w.codes(".q", DType::U4, 4, 48, 128, 32), w.bitsAcross(".h", 16), w.scalesOfEight(4);
    w.f16(".d", 256, 0), w.f16(".dmin", 256, 2);
    break;
  case WeightFormat::Q6_K:
    w.codes(".q", DType::U4, 4, 0, 128, 64), w.codes(".u", DType::U2, 2, 128, 64, 32);
    w.whole(".s", DType::I8, 16, 192, 16), w.f16(".d", 256, 208);
    break;
  default: // dense
    w.whole("", info(format).dtype, 1, 0, info(format).bytes);
  }
  for (const WeightPlane &p : w.form.planes)
    w.form.partBytes.push_back(info(format).elements / p.elements * bitWidth(p.dtype) / 8);
  return std::move(w.form);
}

const BlockForm &formOf(WeightFormat format) {
  static const auto forms = [] {
    std::vector<BlockForm> all;
    for (unsigned i = 0; i < numWeightFormats; ++i) all.push_back(formFor(WeightFormat(i)));
    return all;
  }();
  return forms[size_t(format)];
}

/// Or-s bits of `from` into `to`; whole bytes, or bits of one byte.
void copyBits(const uint8_t *from, unsigned fromBit, uint8_t *to, unsigned toBit, unsigned bits) {
  if (bits % 8 == 0)
    std::memcpy(to + toBit / 8, from + fromBit / 8, bits / 8);
  else
    to[toBit / 8] |= uint8_t((from[fromBit / 8] >> fromBit % 8 & ((1u << bits) - 1)) << toBit % 8);
}

std::vector<int64_t> planeDims(llvm::ArrayRef<int64_t> dims, const WeightPlane &p) {
  std::vector<int64_t> all = dims;
  if (p.elements > 1) all.back() /= p.elements;
  return all;
}

} // namespace

llvm::ArrayRef<WeightPlane> compose::planesOf(WeightFormat format) { return formOf(format).planes; }

std::vector<Payload> compose::splitBlocks(WeightFormat format, llvm::ArrayRef<int64_t> dims,
                                          llvm::ArrayRef<uint8_t> bytes) {
  assert(weightBytes(format, dims) == bytes.size());
  const BlockForm &form = formOf(format);
  std::vector<Payload> planes;
  if (!info(format).isBlocked()) {
    planes.push_back({info(format).dtype, dims, bytes});
    return planes;
  }
  size_t blockBytes = info(format).bytes, blocks = bytes.size() / blockBytes;
  for (auto [p, part] : llvm::zip(form.planes, form.partBytes))
    planes.push_back({p.dtype, planeDims(dims, p), std::vector<uint8_t>(blocks * part)});
  for (size_t i = 0; i < blocks; ++i)
    for (const Field &f : form.fields)
      copyBits(bytes.data() + i * blockBytes, f.from, planes[f.plane].bytes.data() + i * form.partBytes[f.plane], f.to,
               f.bits);
  return planes;
}

llvm::Expected<std::vector<uint8_t>> compose::joinBlocks(WeightFormat format, llvm::ArrayRef<int64_t> dims,
                                                         llvm::ArrayRef<Payload> planes) {
  const BlockForm &form = formOf(format);
  auto fail = [&](const llvm::Twine &why) {
    return llvm::createStringError("planes of " + llvm::Twine(info(format).text) + ": " + why);
  };
  auto size = weightBytes(format, dims);
  if (!size) return fail("the dims are not whole blocks");
  if (planes.size() != form.planes.size())
    return fail(llvm::Twine(form.planes.size()) + " are expected, there are " + llvm::Twine(planes.size()));
  size_t blockBytes = info(format).bytes, blocks = *size / blockBytes;
  for (auto [p, part, plane] : llvm::zip(form.planes, form.partBytes, planes))
    if (plane.dtype != p.dtype || plane.dims != planeDims(dims, p) || plane.bytes.size() != blocks * part)
      return fail(llvm::Twine("'") + p.suffix + "' has another type or other dims than expected");
  std::vector<uint8_t> bytes(*size);
  for (size_t i = 0; i < blocks; ++i)
    for (const Field &f : form.fields)
      copyBits(planes[f.plane].bytes.data() + i * form.partBytes[f.plane], f.to, bytes.data() + i * blockBytes, f.from,
               f.bits);
  for (auto [plane, again, p] : llvm::zip(planes, splitBlocks(format, dims, bytes), form.planes))
    if (plane.bytes != again.bytes)
      return fail(llvm::Twine("'") + p.suffix + "' has numbers of more bits than blocks have room for");
  return bytes;
}
